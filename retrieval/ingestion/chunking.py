"""Cutting a text into passages: along headings, paragraphs and sentences, always the same way."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise

from retrieval.ingestion.content import Content, Heading
from retrieval.ingestion.graphemes import boundary_near, is_boundary

TARGET, MOST, LEAST = 300, 400, 60  # words
CHARACTERS_A_WORD = 8  # what counts as a word where a script or a machine puts no spaces
LONGEST_WORD = 1_600  # characters
SECTION_LENGTH, TITLE_LENGTH = 300, 120
BETWEEN_TITLES = " › "

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])[\"”’」』）]*")
_LINE_END = re.compile(r"\n\s*")
_SPACE = re.compile(r"\s+")

Range = tuple[int, int]
Cut = Callable[[str, int, int], Iterator[Range]]


@dataclass(frozen=True, slots=True)
class Span:
    """A passage to be: the characters `start` to `end`, under the titles in `section`, from `page` on."""

    start: int
    end: int
    section: str
    page: int | None


@dataclass(frozen=True, slots=True)
class _Unit:
    """A range that begins and ends with a visible character, its words, and the number of headings up to it."""

    start: int
    end: int
    words: int
    under: int


@dataclass(slots=True)
class _Passage:
    """Units that follow each other."""

    start: int
    end: int
    words: int = 0
    by_heading: dict[int, int] = field(default_factory=dict)

    def add(self, unit: _Unit) -> None:
        self.end = unit.end
        self.words += unit.words
        self.by_heading[unit.under] = self.by_heading.get(unit.under, 0) + unit.words


def chunk(content: Content) -> Iterator[Span]:
    """Passages in the order of the text; every visible character is in exactly one.

    About TARGET words, at most about MOST; a section shorter than LEAST stands with what follows it.
    """
    paths = _paths(content.headings)
    for passage in _with_their_tails(_packed(_units(content))):
        page = bisect_right(content.pages, passage.start) if content.pages else None
        if content.rows:
            section = _row_numbers(content.rows, passage)
        else:
            section = paths[max(passage.by_heading, key=lambda under: passage.by_heading[under])]
        yield Span(passage.start, passage.end, section, max(page, 1) if page is not None else None)


def _packed(units: Iterable[_Unit]) -> Iterator[_Passage]:
    passage: _Passage | None = None
    for unit in units:
        if passage is None or _is_full(passage, unit):
            if passage is not None:
                yield passage
            passage = _Passage(unit.start, unit.end)
        passage.add(unit)
    if passage is not None:
        yield passage


def _is_full(passage: _Passage, unit: _Unit) -> bool:
    together = passage.words + unit.words
    if passage.words < LEAST:
        return together > MOST
    return together > TARGET or unit.under not in passage.by_heading


def _with_their_tails(passages: Iterable[_Passage]) -> Iterator[_Passage]:
    """A few words left over at the end of a section go to the passage before."""
    previous: _Passage | None = None
    for passage in passages:
        is_tail = passage.words < LEAST and previous and set(passage.by_heading) <= set(previous.by_heading)
        if previous and is_tail and previous.words + passage.words <= MOST:
            previous.end = passage.end
            previous.words += passage.words
            continue
        if previous:
            yield previous
        previous = passage
    if previous:
        yield previous


def _units(content: Content) -> Iterator[_Unit]:
    text = content.text
    starts = [heading.start for heading in content.headings]
    whole = set(content.blocks)
    edges = sorted({0, len(text), *starts, *content.rows, *chain.from_iterable(content.blocks)})
    for start, end in pairwise(edges):
        under = bisect_right(starts, start)
        is_block = (start, end) in whole or bool(content.rows)
        cuts = _INSIDE_BLOCKS if is_block else _INSIDE_PROSE
        for first, last in _fitting(text, start, end, cuts):
            yield _Unit(first, last, _words(text, first, last), under)


def _fitting(text: str, start: int, end: int, cuts: tuple[Cut, ...]) -> Iterator[Range]:
    """The range in pieces that fit a passage; prose comes in paragraphs at least."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    if not cuts or (cuts[0] is not _paragraphs and _words(text, start, end) <= MOST):
        yield start, end
        return
    for first, last in cuts[0](text, start, end):
        yield from _fitting(text, first, last, cuts[1:])


def _cut_after(pattern: re.Pattern[str]) -> Cut:
    def cut(text: str, start: int, end: int) -> Iterator[Range]:
        for match in pattern.finditer(text, start, end):
            if match.end() > start and is_boundary(text, match.end()):
                yield start, match.end()
                start = match.end()
        yield start, end

    return cut


def _letters(text: str, start: int, end: int) -> Iterator[Range]:
    while end - start > LONGEST_WORD:
        at = min(boundary_near(text, start + LONGEST_WORD), end)
        yield start, at
        start = at
    yield start, end


_paragraphs, _sentences, _lines, _single_words = map(_cut_after, (_BLANK_LINE, _SENTENCE_END, _LINE_END, _SPACE))
_INSIDE_PROSE = (_paragraphs, _sentences, _lines, _single_words, _letters)
_INSIDE_BLOCKS = (_lines, _single_words, _letters)


def _words(text: str, start: int, end: int) -> int:
    return max(len(text[start:end].split()), -(-(end - start) // CHARACTERS_A_WORD))


def _trimmed(text: str, start: int, end: int) -> Range:
    part = text[start:end]
    return end - len(part.lstrip()), start + len(part.rstrip())


def _paths(headings: tuple[Heading, ...]) -> list[str]:
    """The path under no heading, under the first, the second, …"""
    paths, open_headings = [""], list[Heading]()
    for heading in headings:
        while open_headings and open_headings[-1].level >= heading.level:
            open_headings.pop()
        open_headings.append(heading)
        titles = (" ".join(one.title.split())[:TITLE_LENGTH] for one in open_headings[-8:])
        paths.append(BETWEEN_TITLES.join(titles)[-SECTION_LENGTH:])
    return paths


def _row_numbers(rows: tuple[int, ...], passage: _Passage) -> str:
    first, last = bisect_right(rows, passage.start), bisect_right(rows, passage.end - 1)
    return f"Row {first}" if first == last else f"Rows {first}–{last}"
