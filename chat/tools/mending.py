"""Slips that leave no doubt about what was meant are mended, so that no turn is spent on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

_BETWEEN = re.compile(r"[\s_-]+")


def with_choices(value: Any, schema: Any) -> Any:
    """The same value, where a text means one of the allowed ones but for case, spaces, hyphens or underscores."""
    if not isinstance(schema, Mapping):
        return value
    for branch in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(branch) or ():
            value = with_choices(value, part)
    match value:
        case dict():
            return {name: with_choices(part, _of_property(name, schema)) for name, part in value.items()}
        case list():
            return [with_choices(part, _of_item(place, schema)) for place, part in enumerate(value)]
        case str():
            return _chosen(value, schema)
    return value


def with_whole_numbers(value: Any, schema: Any) -> Any:
    """The same value, with 5.0 as 5 where a whole number is wanted: the two are one in JSON, and not to a tool."""
    if not isinstance(schema, Mapping):
        return value
    match value:
        case dict():
            return {name: with_whole_numbers(part, _of_property(name, schema)) for name, part in value.items()}
        case list():
            return [with_whole_numbers(part, _of_item(place, schema)) for place, part in enumerate(value)]
        case float() if schema.get("type") == "integer" and value.is_integer():
            return int(value)
    return value


def _chosen(text: str, schema: Mapping[str, Any]) -> str:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [text])
    if text in choices:
        return text
    meant = [choice for choice in choices if isinstance(choice, str) and _plain(choice) == _plain(text)]
    return meant[0] if len(meant) == 1 else text


def _plain(text: str) -> str:
    return _BETWEEN.sub(" ", normalize("NFKC", text).casefold()).strip()


def _of_property(name: str, schema: Mapping[str, Any]) -> Any:
    known = schema.get("properties")
    if isinstance(known, Mapping) and name in known:
        return known[name]
    return schema.get("additionalProperties")


def _of_item(place: int, schema: Mapping[str, Any]) -> Any:
    first = schema.get("prefixItems") or ()
    return first[place] if place < len(first) else schema.get("items")
