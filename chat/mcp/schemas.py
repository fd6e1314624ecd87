"""A server's schemas in the form that every vendor and our validator take.

References are written out, since not every vendor follows them and one may lead to an address. Patterns are left out:
a hostile one holds up whoever checks it, and the server checks for itself. What is no schema becomes a free object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MOST_PARTS = 2_000
MOST_CHARACTERS = 30_000
MOST_DEPTH = 12
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAPS = {"properties", "dependentSchemas"}
_ONE = {"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems"}
_SEVERAL = {"anyOf", "allOf", "oneOf", "prefixItems"}
_DROPPED = {
    *("$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$defs", "definitions", "$ref"),
    *("pattern", "patternProperties", "unevaluatedProperties", "$vocabulary", "$comment", "contentSchema"),
}
_NOT_AT_THE_TOP = {"anyOf", "allOf", "oneOf", "not", "if", "then", "else"}


class _TooMuch(Exception):
    """A schema that would not end."""


def plain_schema(given: object) -> dict[str, Any]:
    """A JSON Schema object for the arguments of a tool, never more than the server asked for."""
    if not isinstance(given, Mapping):
        return {"type": "object"}
    try:
        flat = _Flattening(given).part(given, depth=0, following=())
        Draft202012Validator.check_schema(flat)
    except (_TooMuch, SchemaError, RecursionError):
        return _names_only(given)
    if not isinstance(flat, dict) or len(json.dumps(flat)) > MOST_CHARACTERS:
        return _names_only(given)
    top = {name: value for name, value in flat.items() if name not in _NOT_AT_THE_TOP}
    return {**top, "type": "object"} if _are_sound(top.get("properties", {})) else {"type": "object"}


def _names_only(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a schema that cannot be used: its arguments by name, to be checked by the server."""
    properties = given.get("properties")
    names = [name for name in properties if _PROPERTY.fullmatch(str(name))] if isinstance(properties, Mapping) else []
    return {"type": "object", "properties": {name: {} for name in names[:100]}} if names else {"type": "object"}


def _are_sound(properties: Mapping[str, Any]) -> bool:
    return all(_PROPERTY.fullmatch(name) for name in properties)


class _Flattening:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def part(self, schema: Any, *, depth: int, following: tuple[str, ...]) -> Any:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _TooMuch
        if schema is True or depth > MOST_DEPTH:
            return {}
        if schema is False:
            return {"not": {}}
        if not isinstance(schema, Mapping):
            raise _TooMuch
        if isinstance(schema.get("$ref"), str):
            schema, following = self._followed(schema, following)
        return {
            name: self._value(name, value, depth=depth + 1, following=following)
            for name, value in _tupled(schema).items()
            if name not in _DROPPED
        }

    def _value(self, name: str, value: Any, *, depth: int, following: tuple[str, ...]) -> Any:
        if name in _MAPS and isinstance(value, Mapping):
            return {key: self.part(each, depth=depth, following=following) for key, each in value.items()}
        if name == "additionalProperties" and isinstance(value, bool):
            return value
        if name in _ONE:
            return self.part(value, depth=depth, following=following)
        if name in _SEVERAL and isinstance(value, list):
            return [self.part(each, depth=depth, following=following) for each in value]
        return value

    def _followed(self, schema: Mapping[str, Any], following: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
        """What a reference stands for; one that leads back to itself, or elsewhere, stands for anything."""
        reference = schema["$ref"]
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        target = self._target(reference)
        if reference in following or not isinstance(target, Mapping) or isinstance(target.get("$ref"), str):
            return beside, following
        return {**target, **beside}, (*following, reference)

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return None
        found: Any = self._root
        for step in reference[2:].split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


def _tupled(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Older drafts write a list of schemas, one a place, as `items`."""
    items = schema.get("items")
    if not isinstance(items, list):
        return schema
    return {**{name: value for name, value in schema.items() if name != "items"}, "prefixItems": items}
