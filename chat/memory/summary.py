"""The mechanical summary: no model, no wait, good enough to live with.

A later call rarely needs the prose of an old result; it needs a name, a path, a number that stood in it. So the summary
is the beginning, the end, and the values between them, as many as the budget holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from chat.memory.tokens import count


@dataclass(frozen=True, slots=True)
class Size:
    """How long a text may be to stand for itself, and how long its summary gets, its beginning and end included."""

    short_tokens: int
    characters: int
    head: int
    tail: int


RESULT = Size(short_tokens=60, characters=200, head=80, tail=50)
ANSWER = Size(short_tokens=150, characters=400, head=220, tail=100)
QUESTION = Size(short_tokens=400, characters=1_000, head=600, tail=200)
_READ_FROM_START, _READ_FROM_END = 30_000, 10_000
_LONGEST_VALUE = 80

# What later calls ask for again, the most telling first. Every repetition is bounded: the text may be hostile.
_VALUES = (
    re.compile(r"https?://[^\s<>\"')\]]{1,200}"),
    re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}"),
    re.compile(r"(?<![\w/.@-])~?/?(?:[\w.@-]{1,64}/){1,12}[\w.@-]{1,64}"),
    re.compile(r"(?<![\w.-])[\w-]{1,64}\.(?:[a-z]{1,4}\d?|json|yaml|toml|html|ipynb)\b"),
    re.compile(r"\b(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b"),
    re.compile(r"#\d{1,9}\b"),
    re.compile(r"\b\d{4}-\d\d-\d\d(?:T[\d:.]{4,16}(?:Z|[+-]\d\d:?\d\d)?)?"),
    re.compile(r"\b[A-Za-z]{1,40}(?:[_.][A-Za-z0-9]{1,40}){1,8}\b"),
    re.compile(r"\b[a-z]{1,40}(?:[A-Z][a-z0-9]{1,40}){1,6}\b|\b(?:[A-Z][a-z0-9]{1,40}){2,6}\b"),
    re.compile(r"[€$£]?\d[\d,.]{0,24}\d(?:\s?%)?"),
    re.compile(r"[\"“`]([^\"”`\n{}\[\],:]{4,60})[\"”`]"),
    re.compile(r"\b[A-Z][\w-]{1,30}(?: [A-Z][\w-]{1,30}){1,5}\b"),
)


def mechanical(text: str, size: Size = RESULT, *, tokens: int | None = None) -> str | None:
    """A summary on one line; None when the text is short enough to be its own. `tokens` spares counting again."""
    if _is_short(text, size.short_tokens, tokens):
        return None
    read = text[:_READ_FROM_START] + text[_READ_FROM_START:][-_READ_FROM_END:]
    shape = _shape(read)
    head = cut(shape or " ".join(read[: size.head * 4].split()), size.head)
    tail = "" if shape else f" … {_cut_front(' '.join(read[-size.tail * 4 :].split()), size.tail)}"
    room = size.characters - len(head) - len(tail)
    values = ", ".join(_fitting(_values(read), room=room, known=head + tail))
    return f"{head}{tail} · {values}" if values else f"{head}{tail}"


def _is_short(text: str, most: int, tokens: int | None) -> bool:
    if tokens is not None:
        return tokens <= most
    return len(text) <= most or (len(text) <= most * 8 and count(text) <= most)


def _values(text: str) -> Iterator[str]:
    """Every value once, the kinds taking turns, so that many of one kind do not crowd out the others."""
    kinds = [iter(_found(kind, text)) for kind in _VALUES]
    seen: set[str] = set()
    while kinds:
        for kind in list(kinds):
            value = next(kind, None)
            if value is None:
                kinds.remove(kind)
            elif value not in seen:
                seen.add(value)
                yield value


def _found(kind: re.Pattern[str], text: str) -> list[str]:
    """What the kind finds, the most frequent first, then as it stands in the text."""
    tally: dict[str, int] = {}
    for match in kind.finditer(text):
        value = (match[1] if kind.groups else match[0]).rstrip(".,:;")
        if 3 <= len(value) <= _LONGEST_VALUE:
            tally[value] = tally.get(value, 0) + 1
    return sorted(tally, key=lambda value: -tally[value])


def _fitting(values: Iterable[str], *, room: int, known: str) -> Iterator[str]:
    for value in values:
        if value in known:
            continue
        room -= len(value) + 2
        if room < 0:
            return
        yield value


def _shape(text: str) -> str:
    """Of JSON its keys and lengths; of anything else nothing."""
    if text[:1] not in "{[":
        return ""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return _keys(found)


def _keys(found: Any) -> str:
    match found:
        case dict():
            return "{" + ", ".join(_entry(name, value) for name, value in found.items()) + "}"
        case [dict() as first, *_]:
            return f"{len(found)} × {_keys(first)}"
        case list():
            return f"{len(found)} entries"
    return str(found)


def _entry(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(value)}"
    if isinstance(value, dict):
        return f"{name}: …"
    return f"{name}: {cut(str(value), 30)}"


def cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return text[:length].rsplit(" ", 1)[0] + "…"


def _cut_front(text: str, length: int) -> str:
    return text if len(text) <= length else text[-length:].split(" ", 1)[-1]
