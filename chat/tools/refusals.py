"""Why a call is not run, and what to change about it, in words for the model. The field is named in both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import ValidationError

from chat.tools.base import Tool

MOST_ERRORS = 5
MOST_FIELD_CHARACTERS = 120
MOST_RULE_CHARACTERS = 300
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The call may not run. `reason` says why and `guidance` what to do, both to the model."""

    reason: str
    guidance: str

    @property
    def text(self) -> str:
        return f"Refused: {self.reason} {self.guidance}"


def unknown_tool(name: str, names: Iterable[str]) -> Refused:
    return Refused(f"there is no tool named {name[:80]!r}.", f"Available: {', '.join(names) or 'none'}.")


def no_object(tool: Tool) -> Refused:
    return Refused("the arguments are not a whole JSON object.", f"Call {tool.name} again with {wanted(tool)} as JSON.")


def refused_field(path: Path, problem: str, guidance: str) -> Refused:
    """`guidance` holds the field's place as `{field}`."""
    field = field_named(path)
    return Refused(f"{field} {problem}.", guidance.replace("{field}", field))


def against_schema(tool: Tool, errors: Sequence[ValidationError]) -> Refused:
    """What the schema has against the arguments: the first error at length, some others in short."""
    first, *others = (_against(tool, error) for error in errors[:MOST_ERRORS])
    also = " ".join(other.reason for other in others)
    return Refused(first.reason, f"{first.guidance} Also: {also}") if also else first


def _against(tool: Tool, error: ValidationError) -> Refused:
    path = tuple(error.absolute_path)
    takes = f"{tool.name} takes {wanted(tool)}." if len(path) == 1 else "Correct it and call again."
    match error.validator:
        case "required":
            return refused_field(path, "is missing", "Send {field} too: " + takes)
        case "additionalProperties" | "unevaluatedProperties":
            return refused_field(path, "is not known", "Leave {field} out: " + takes)
        case "dependentRequired":
            return refused_field(path, _cut(error.message), "Send {field} too: " + takes)
    return refused_field(path, _problem(error), "Send {field} so. " + _described(error))


def _problem(error: ValidationError) -> str:
    rule: Any = error.validator_value
    sent: Any = error.instance
    match error.validator:
        case "type":
            return f"must be {' or '.join(rule) if isinstance(rule, list) else rule}"
        case "enum":
            return f"must be one of {_cut(', '.join(map(_json, rule)))}"
        case "const":
            return f"must be {_cut(_json(rule))}"
        case "minLength":
            return f"must have at least {rule} characters; it has {len(sent)}"
        case "maxLength":
            return f"may have at most {rule:,} characters; it has {len(sent):,}"
        case "minItems":
            return f"must hold at least {rule}; it holds {len(sent)}"
        case "maxItems":
            return f"may hold at most {rule}; it holds {len(sent)}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return f"must be {_BOUNDS[error.validator]} {rule}"
        case "pattern" | "format" | "multipleOf" | "uniqueItems":
            return _cut(error.message)
    return f"does not fit: {_cut(error.message)}"


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


def wanted(tool: Tool) -> str:
    """The names of what the tool takes."""
    required = tool.parameters.get("required", [])
    names = [name if name in required else f"{name} (optional)" for name in tool.parameters.get("properties", {})]
    return ", ".join(names) or "no arguments"


def field_named(path: Sequence[str | int]) -> str:
    if not path:
        return "the arguments"
    name = ".".join(str(part) for part in path) or "a field without a name"
    return name if len(name) <= MOST_FIELD_CHARACTERS else f"{name[:MOST_FIELD_CHARACTERS]}…"


def _described(error: ValidationError) -> str:
    description = _object(error.schema).get("description")
    return f"It is: {_cut(str(description))}" if description else "Correct it and call again."


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_RULE_CHARACTERS else f"{text[:MOST_RULE_CHARACTERS]}…"
