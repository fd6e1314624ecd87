"""The few shapes of JSON Schema of which the API's description is made."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
FLAG: Json = {"type": "boolean"}
MOMENT: Json = {"type": "string", "format": "date-time"}
UUID: Json = {"type": "string", "format": "uuid"}
ADDRESS: Json = {"type": "string", "format": "uri"}
ANYTHING: Json = {"type": "object", "additionalProperties": True}
SLUG: Json = {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$"}


def record(**fields: Json) -> Json:
    """An object that has all of these; it may have more."""
    return {"type": "object", "required": list(fields), "properties": fields}


def wanted(*required: str, **fields: Json) -> Json:
    """An object as it is sent: only what is named first must be there."""
    shape = {"type": "object", "properties": fields}
    return {**shape, "required": list(required)} if required else shape


def with_more(shape: Json, **fields: Json) -> Json:
    """The record with fields that are not always there."""
    return {**shape, "properties": {**shape["properties"], **fields}}


def listed(shape: Json) -> Json:
    return {"type": "array", "items": shape}


def mapped(shape: Json) -> Json:
    """An object with names that are not known before, each with this shape."""
    return {"type": "object", "additionalProperties": shape}


def maybe(shape: Json) -> Json:
    """This, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


def choice(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def said(shape: Json, words: str) -> Json:
    return {**shape, "description": words}


def named(component: str) -> Json:
    """One of the components."""
    return {"$ref": f"#/components/schemas/{component}"}
