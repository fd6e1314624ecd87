"""A JSON object while it is being written: its values as they become whole, and one string as it grows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

_SPACE = " \t\n\r"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Whole:
    """A value of the object that is complete."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Growth:
    """More characters of the string that is watched."""

    text: str


class _At(Enum):
    START = auto()
    NAME = auto()
    COLON = auto()
    VALUE = auto()
    INSIDE = auto()
    GROWING = auto()
    COMMA = auto()
    OVER = auto()
    BROKEN = auto()


class PartialObject:
    """Reads an object piece by piece, however it is cut; `grows` names the string that is given out as it comes.

    What is no JSON ends the reading without a word: whoever has the whole text can say what is wrong with it.
    """

    def __init__(self, *, grows: str) -> None:
        self._grows = grows
        self._at = _At.START
        self._text = ""
        self._name = ""
        self._names: set[str] = set()

    def feed(self, piece: str) -> Iterator[Whole | Growth]:
        """What the piece completes or adds, in the order in which it is written."""
        self._text += piece
        while self._text and self._at not in (_At.OVER, _At.BROKEN):
            before = self._at
            found = self._step()
            if found is not None:
                yield found
            elif self._at is before:
                return

    def _step(self) -> Whole | Growth | None:
        """Go on by one token; where that needs more text than there is, nothing changes."""
        if self._at not in (_At.INSIDE, _At.GROWING):
            self._text = self._text.lstrip(_SPACE)
            if not self._text:
                return None
        match self._at:
            case _At.START:
                self._expect("{", _At.NAME)
            case _At.NAME:
                self._read_name()
            case _At.COLON:
                self._expect(":", _At.VALUE)
            case _At.VALUE:
                self._open_value()
            case _At.INSIDE:
                return self._read_value()
            case _At.GROWING:
                return self._grow()
            case _At.COMMA:
                self._expect(",", _At.NAME, or_end=True)
        return None

    def _expect(self, mark: str, then: _At, *, or_end: bool = False) -> None:
        found, self._text = self._text[0], self._text[1:]
        if found == mark:
            self._at = then
        else:
            self._at = _At.OVER if or_end and found == "}" else _At.BROKEN

    def _read_name(self) -> None:
        if self._text[0] == "}" and not self._names:
            self._at = _At.OVER
            return
        end = _end_of(self._text)
        if end is None:
            return
        name = _parsed(self._text[:end])
        self._text = self._text[end:]
        is_new = isinstance(name, str) and name not in self._names
        self._at = _At.COLON if is_new else _At.BROKEN
        self._name = str(name)
        self._names.add(self._name)

    def _open_value(self) -> None:
        if self._name == self._grows and self._text[0] == '"':
            self._text = self._text[1:]
            self._at = _At.GROWING
        else:
            self._at = _At.INSIDE

    def _read_value(self) -> Whole | None:
        end = _end_of(self._text)
        if end is None:
            return None
        value = _parsed(self._text[:end])
        self._text = self._text[end:]
        self._at = _At.BROKEN if value is _NOTHING else _At.COMMA
        return None if value is _NOTHING else Whole(self._name, value)

    def _grow(self) -> Growth | None:
        """All the characters that are certain by now; an escape may still be half written."""
        parts: list[str] = []
        at = 0
        while at < len(self._text):
            if plain := _PLAIN.match(self._text, at):
                parts.append(plain[0])
                at = plain.end()
            elif self._text[at] == '"':
                at += 1
                self._at = _At.COMMA
                break
            else:
                length, character = _escape(self._text[at : at + 12])
                if not length:
                    break
                if not character:
                    self._at = _At.BROKEN
                    break
                parts.append(character)
                at += length
        self._text = self._text[at:]
        return Growth("".join(parts)) if parts else None


_NOTHING = object()


def _parsed(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return _NOTHING


def _escape(text: str) -> tuple[int, str]:
    """How long the escape at the beginning is, and its character: 0 while it is unfinished, "" where it is none."""
    if text[0] != "\\":
        return 1, ""
    if len(text) < 2:
        return 0, ""
    if text[1] != "u":
        return 2, _ESCAPES.get(text[1], "")
    if not _HEX.issuperset(text[2:6]):
        return 6, ""
    if len(text) < 6:
        return 0, ""
    code = int(text[2:6], 16)
    if not 0xD800 <= code <= 0xDFFF:
        return 6, chr(code)
    return _pair(text, code)


def _pair(text: str, high: int) -> tuple[int, str]:
    """Two escapes that are one character; half of it alone is none."""
    rest = text[6:12]
    if high >= 0xDC00 or not "\\u".startswith(rest[:2]) or not _HEX.issuperset(rest[2:]):
        return 6, ""
    if len(rest) < 6:
        return 0, ""
    low = int(rest[2:], 16)
    if not 0xDC00 <= low <= 0xDFFF:
        return 6, ""
    return 12, chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _end_of(text: str) -> int | None:
    """Where the value at the beginning ends: behind its last mark, or before what follows a number or a word."""
    match text[0]:
        case '"':
            return _end_of_string(text, 0)
        case "{" | "[":
            return _end_of_nested(text)
    return next((at for at, character in enumerate(text) if character in ",}]" or character in _SPACE), None)


def _end_of_string(text: str, start: int) -> int | None:
    at = start + 1
    while at < len(text):
        if text[at] == '"':
            return at + 1
        at += 2 if text[at] == "\\" else 1
    return None


def _end_of_nested(text: str) -> int | None:
    depth, at = 0, 0
    while at < len(text):
        match text[at]:
            case '"':
                end = _end_of_string(text, at)
                if end is None:
                    return None
                at = end
                continue
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
        at += 1
        if depth == 0:
            return at
    return None
