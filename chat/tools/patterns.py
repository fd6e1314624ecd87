"""Patterns of a schema, matched in bounded time whoever wrote them."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, ValidationError

MOST_EFFORT = 10_000_000
MOST_BACKTRACKING = 1_000_000
_COUNTED = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_ESCAPES_AND_CLASSES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?<!\()[*+?{]")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text.

    One that is no pattern, or that could take long on this text, is left to the tool: then True.
    """
    if len(pattern) * _repetitions(pattern) * len(text) > MOST_EFFORT:
        return True
    linear = _linear(pattern)
    if linear is None:
        return _backtracked(pattern, text)
    try:
        linear.validate_python(text)
    except ValidationError:
        return False
    return True


def _repetitions(pattern: str) -> int:
    """What counted repetitions can multiply a pattern by: its program grows by as much."""
    return math.prod(max(1, int(most or least)) for least, most in _COUNTED.findall(pattern))


@lru_cache(maxsize=256)
def _linear(pattern: str) -> SchemaValidator | None:
    """A matcher whose time is linear in the text: an engine that never goes back, and so cannot look around."""
    try:
        return SchemaValidator({"type": "str", "pattern": pattern, "regex_engine": "rust-regex"})
    except SchemaError:
        return None


def _backtracked(pattern: str, text: str) -> bool:
    """What only Python's engine reads. It may take the text's length to the power of the repetitions."""
    bare = _ESCAPES_AND_CLASSES.sub("x", pattern)
    power = len(_QUANTIFIER.findall(bare))
    if _REPEATED_GROUP.search(bare) or (len(text) + 1) ** power > MOST_BACKTRACKING:
        return True
    try:
        return re.search(pattern, text) is not None
    except (re.error, OverflowError, RecursionError):
        return True
