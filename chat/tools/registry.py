"""Finds the tools: every module of this package that offers a TOOL and can be used with the settings as they are."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

import chat.tools
from chat.tools.base import Tool


class DuplicateTool(Exception):
    """Two tools have one name."""


def discover() -> Mapping[str, Tool]:
    """All tools by name, in the order of their names, so that a prompt is the same in every process.

    A module whose `is_available` says no, because a key is missing, offers none.
    """
    found: dict[str, Tool] = {}
    for tool in _offered():
        if tool.name in found:
            raise DuplicateTool(tool.name)
        found[tool.name] = tool
    return MappingProxyType(dict(sorted(found.items())))


def _offered() -> Iterator[Tool]:
    for module in pkgutil.iter_modules(chat.tools.__path__, prefix=f"{chat.tools.__name__}."):
        found = import_module(module.name)
        tool: Tool | None = getattr(found, "TOOL", None)
        is_available: Callable[[], bool] | None = getattr(found, "is_available", None)
        if tool is not None and (is_available is None or is_available()):
            yield tool
