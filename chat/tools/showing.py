"""What a person may see of a tool call: secrets masked, long texts cut, nothing a database cannot hold."""

from __future__ import annotations

import re
from typing import Any

MAX_SHOWN_CHARACTERS = 2_000
MAX_SHOWN_DEPTH = 20
MAX_SHOWN_NUMBER = 2**53  # beyond it JSON readers do not agree
MASK = "••••"
_SECRET_NAME = re.compile(r"(pass(word|wd)|secret|token|api_?key|authorization|credential)", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\b(kl_[A-Za-z0-9]+_[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}|pplx-[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|Bearer\s+\S{12,})"
)


def shown(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as a card shows them."""
    return {clean(str(name))[:128]: _shown(name, value) for name, value in arguments.items()}


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which neither JSON readers nor PostgreSQL take."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _shown(name: str, value: Any, depth: int = 0) -> Any:
    match value:
        case dict() | list() if depth == MAX_SHOWN_DEPTH:
            return "…"
        case str() | int() if _SECRET_NAME.search(str(name)):
            return MASK
        case str():
            masked = _SECRET_VALUE.sub(MASK, clean(value))
            return masked if len(masked) <= MAX_SHOWN_CHARACTERS else masked[:MAX_SHOWN_CHARACTERS] + "…"
        case dict():
            return {clean(str(key))[:128]: _shown(str(key), part, depth + 1) for key, part in value.items()}
        case list():
            return [_shown(name, part, depth + 1) for part in value]
        case int() | float() if not abs(value) <= MAX_SHOWN_NUMBER:
            return str(value)
    return value
