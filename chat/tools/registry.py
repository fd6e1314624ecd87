"""Finds the tools: every module of this package that offers a TOOL."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

import chat.tools
from chat.tools.base import Tool


class DuplicateTool(Exception):
    """Two tools have one name."""


def discover() -> Mapping[str, Tool]:
    """All tools by name, in the order of their names, so that a prompt is the same in every process."""
    found: dict[str, Tool] = {}
    for tool in _offered():
        if tool.name in found:
            raise DuplicateTool(tool.name)
        found[tool.name] = tool
    return MappingProxyType(dict(sorted(found.items())))


def _offered() -> Iterator[Tool]:
    for module in pkgutil.iter_modules(chat.tools.__path__, prefix=f"{chat.tools.__name__}."):
        tool: Tool | None = getattr(import_module(module.name), "TOOL", None)
        if tool is not None:
            yield tool
