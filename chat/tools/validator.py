"""Checks what a model wants to call before anything runs, and says to the model what to change."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chat.messages import ToolCall
from chat.tools.base import Tool
from chat.tools.mending import with_choices, with_whole_numbers
from chat.tools.refusals import Path, Refused, against_schema, no_object, refused_field, unknown_tool
from chat.tools.schemas import Unchecked, errors_in

MAX_ARGUMENT_CHARACTERS = 100_000
MAX_DEPTH = 20
# Control characters, and those that turn the direction of what stands beside them: a text must be what it looks like.
HIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Valid:
    """The call may run, with these arguments: slips that leave no doubt are mended."""

    tool: Tool
    arguments: dict[str, Any]


def validate(call: ToolCall, tools: Mapping[str, Tool]) -> Valid | Refused:
    tool = tools.get(call.name)
    if tool is None:
        return unknown_tool(call.name, tools)
    if call.arguments is None:
        return no_object(tool)
    refused = _too_much(call.arguments)
    if refused is not None:
        return refused
    try:
        mended, refused = _held_to_schema(tool, call.arguments)
    except Unchecked:
        return Refused(f"the arguments of {tool.name} cannot be checked.", "Send less of them, or go on without it.")
    refused = refused or _hidden(mended)
    return refused or Valid(tool, with_whole_numbers(mended, tool.parameters))


def _held_to_schema(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], Refused | None]:
    if not errors_in(arguments, tool.parameters):
        return arguments, None
    mended = with_choices(arguments, tool.parameters)
    errors = errors_in(mended, tool.parameters)
    return mended, against_schema(tool, errors) if errors else None


def _too_much(arguments: dict[str, Any]) -> Refused | None:
    """What no tool is given, whatever its schema allows."""
    if _is_deep(arguments):
        return Refused(f"the arguments are nested deeper than {MAX_DEPTH} levels.", "Send them flat.")
    for path, value in _leaves(arguments, ()):
        if isinstance(value, int | float) and not _is_writable(value):
            return refused_field(
                path, "is a number that is too large or none at all", "Send {field} as a plain number."
            )
    if len(json.dumps(arguments)) > MAX_ARGUMENT_CHARACTERS:
        return Refused(
            f"the arguments have more than {MAX_ARGUMENT_CHARACTERS:,} characters.", "Send less, in several calls."
        )
    return None


def _hidden(arguments: dict[str, Any]) -> Refused | None:
    for path, value in _leaves(arguments, ()):
        if any(isinstance(text, str) and HIDDEN.search(text) for text in (*path, value)):
            plain = tuple(HIDDEN.sub("", part) if isinstance(part, str) else part for part in path)
            return refused_field(plain, "contains control characters", "Send {field} as plain text.")
    return None


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    match value:
        case dict() if value:
            for name, part in value.items():
                yield from _leaves(part, (*path, name))
        case list() if value:
            for place, part in enumerate(value):
                yield from _leaves(part, (*path, place))
        case _:
            yield path, value


def _is_writable(number: float) -> bool:
    """Whether every reader of JSON takes it: neither infinite nor no number, and within what a double holds."""
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def _is_deep(value: Any) -> bool:
    """Level by level, since what is deep enough ends a recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for one in level for part in _parts(one)]
    return bool(level)


def _parts(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
    return []
