"""What reading a file gives: its text, and where in it things begin that chunking should know of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 and down, at an offset of the text."""

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Content:
    """All numbers are offsets in `text`. `blocks` want to stay whole; `rows` and `pages` say where each begins."""

    text: str
    media_type: str
    headings: tuple[Heading, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()
    rows: tuple[int, ...] = ()
    pages: tuple[int, ...] = ()


@dataclass(slots=True)
class Writer:
    """Puts a text together from paragraphs, with a blank line between two."""

    headings: list[Heading] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0
    _parts: list[str] = field(default_factory=list)

    def paragraph(self, text: str) -> int:
        """Where it begins."""
        if self._parts:
            self._put("\n\n")
        start = self.length
        self._put(text)
        return start

    def heading(self, title: str, level: int) -> None:
        self.headings.append(Heading(self.paragraph(title), level, title))

    def block(self, text: str) -> None:
        start = self.paragraph(text)
        self.blocks.append((start, self.length))

    def line(self, text: str) -> int:
        """Directly under what stands before; where it begins."""
        if self._parts:
            self._put("\n")
        start = self.length
        self._put(text)
        return start

    def content(self, media_type: str, *, rows: tuple[int, ...] = (), pages: tuple[int, ...] = ()) -> Content:
        text = storable("".join(self._parts))
        return Content(text, media_type, tuple(self.headings), tuple(self.blocks), rows, pages)

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)


def storable(text: str) -> str:
    """Character for character the same, but for those that no database takes: NUL and lone surrogates."""
    return _UNSTORABLE.sub(REPLACEMENT, text)
