"""Checks what a model wants to call before anything runs, and says to the model what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from chat.messages import ToolCall
from chat.tools.base import Tool

MAX_ARGUMENT_CHARACTERS = 100_000
MAX_DEPTH = 20
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Valid:
    """The call may run, with these arguments: slips of case in enumerated values are mended."""

    tool: Tool
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The call may not run. `reason` says why and `guidance` what to do, both to the model."""

    reason: str
    guidance: str

    @property
    def text(self) -> str:
        return f"Refused: {self.reason} {self.guidance}"


def validate(call: ToolCall, tools: Mapping[str, Tool]) -> Valid | Refused:
    tool = tools.get(call.name)
    if tool is None:
        return Refused(f"there is no tool named {call.name[:80]!r}.", f"Available: {', '.join(tools) or 'none'}.")
    if call.arguments is None:
        return Refused(
            "the arguments are not a whole JSON object.", f"Call {tool.name} again with {_wanted(tool)} as JSON."
        )
    if _is_deep(call.arguments):
        return Refused(f"the arguments are nested deeper than {MAX_DEPTH} levels.", "Send them flat.")
    if len(json.dumps(call.arguments)) > MAX_ARGUMENT_CHARACTERS:
        return Refused(
            f"the arguments have more than {MAX_ARGUMENT_CHARACTERS:,} characters.", "Send less, in several calls."
        )
    arguments = _mend(call.arguments, tool.parameters)
    error = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if error is not None:
        return _explain(tool, error)
    for path, value in _texts(arguments, ()):
        if _CONTROL.search(value) or not _is_unicode(value):
            return Refused(f"{_field(path)} contains control characters.", "Send it as plain text.")
    return Valid(tool, arguments)


def _explain(tool: Tool, error: ValidationError) -> Refused:
    path = tuple(error.absolute_path)
    rule: Any = error.validator_value
    match error.validator:
        case "required":
            missing = [name for name in rule if name not in _object(error.instance)]
            return Refused(f"{_field((*path, missing[0]))} is missing.", f"{tool.name} takes {_wanted(tool)}.")
        case "additionalProperties":
            known = _object(error.schema).get("properties", {})
            extra = next(name for name in _object(error.instance) if name not in known)
            return Refused(f"{_field((*path, extra))} is not known.", f"{tool.name} takes {_wanted(tool)}.")
        case "type":
            return Refused(f"{_field(path)} must be {_kinds(rule)}.", _described(error))
        case "enum":
            allowed = ", ".join(json.dumps(value) for value in rule)
            return Refused(f"{_field(path)} must be one of {allowed}.", "Choose one of them.")
    return Refused(f"{_field(path)}: {error.message[:300]}.", _described(error))


def _mend(value: Any, schema: Mapping[str, Any]) -> Any:
    """The same value, with enumerated texts in the schema's own case."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {name: _mend(part, known.get(name, {})) for name, part in value.items()}
    if isinstance(value, list):
        return [_mend(part, schema.get("items", {})) for part in value]
    if isinstance(value, str) and value not in schema.get("enum", (value,)):
        same = [choice for choice in schema["enum"] if isinstance(choice, str) and choice.lower() == value.lower()]
        return same[0] if len(same) == 1 else value
    return value


def _texts(value: Any, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], str]]:
    match value:
        case str():
            return [(path, value)]
        case dict():
            return [found for name, part in value.items() for found in _texts(part, (*path, name))]
        case list():
            return [found for index, part in enumerate(value) for found in _texts(part, (*path, index))]
    return []


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


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _field(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path) or "the arguments"


def _kinds(kind: Any) -> str:
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _wanted(tool: Tool) -> str:
    required = tool.parameters.get("required", [])
    names = [name if name in required else f"{name} (optional)" for name in tool.parameters.get("properties", {})]
    return ", ".join(names) or "no arguments"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _described(error: ValidationError) -> str:
    description = _object(error.schema).get("description")
    return str(description) if description else "Correct it and call again."
