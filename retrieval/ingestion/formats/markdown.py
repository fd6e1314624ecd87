"""Markdown: kept as it is; headings, code fences and tables are found in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from retrieval.ingestion.content import Content, Heading, storable

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*\r?\n?\Z")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*\r?\n?\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_TABLE_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\r?\n?\Z")
_NO_TITLE = re.compile(r" {0,3}([>|*+-]|\d+[.)]|#{1,6}\s|\t| {4})")
_LONGEST_LINE = 2_000  # a longer one is prose, whatever it begins with


def read_markdown(text: str, media_type: str = "text/markdown") -> Content:
    kept = storable(text)
    scan = _Scan()
    for start, line in _lines(kept):
        scan.take(start, line)
    scan.finish(len(kept))
    return Content(kept, media_type, tuple(scan.headings), tuple(scan.blocks))


@dataclass(slots=True)
class _Scan:
    """What was found up to the line that is taken next."""

    headings: list[Heading] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    _previous: tuple[int, str] = (0, "")  # the line before, empty where it cannot be a title
    _fence: str = ""
    _block: int | None = None  # where the fence or table we are in began

    def take(self, start: int, line: str) -> None:
        if len(line) > _LONGEST_LINE:
            line = line[:_LONGEST_LINE] if self._fence else ""
        if self._fence:
            self._in_fence(start, line)
            return
        if self._block is not None:
            if "|" in line and line.strip():
                return
            self._close(start)
        self._in_text(start, line)

    def finish(self, end: int) -> None:
        if self._block is not None:
            self._close(end)

    def _in_fence(self, start: int, line: str) -> None:
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            self._close(start + len(line))

    def _in_text(self, start: int, line: str) -> None:
        before, title = self._previous
        self._previous = (start, line)
        if (fence := _FENCE.match(line)) and not (fence[1][0] == "`" and "`" in fence[2]):
            self._fence, self._block = fence[1], start
        elif heading := _HEADING.match(line):
            self._head(start, len(heading[1]), heading[2] or "")
        elif "|" in title and "-" in line and _TABLE_RULE.match(line):
            self._block = before
        elif title.strip() and not _NO_TITLE.match(title) and (underline := _UNDERLINE.match(line)):
            self._head(before, 1 if underline[1][0] == "=" else 2, title)

    def _head(self, start: int, level: int, title: str) -> None:
        self.headings.append(Heading(start, level, title.strip()))
        self._previous = (start, "")

    def _close(self, end: int) -> None:
        assert self._block is not None
        self.blocks.append((self._block, end))
        self._block, self._previous = None, (end, "")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, text[start:end]
        start = end
