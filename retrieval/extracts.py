"""A part of a document's text and the headings it has, without ever loading the whole of a long one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import F, Max, Min
from django.db.models.functions import Length, Substr

from retrieval.models import Chunk, Document

BEFORE = 4_000
PART = 20_000
MOST_CHARACTERS = 60_000
MOST_HEADINGS = 400
MOST_SCANNED = 6_000_000
MARKDOWN = "text/markdown"
SECTION_JOINT = " › "

# A fence is passed over whole: what looks like a heading in it is none.
_MARKDOWN_HEADING = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)|(?P<marks>#{1,6})[ \t](?P<title>[^\n]{1,400}))",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Extract:
    """The characters `start` to `end` of a text that has `length` of them."""

    text: str
    start: int
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class Heading:
    """Where a section begins, or a page of a document without sections."""

    title: str
    level: int
    start: int
    page: int | None


def extract_around(document: Document, start: int, end: int | None = None) -> Extract:
    """Where a reader opens: some text before `start`, and on to `end` and beyond. Cut where passages begin."""
    first = max(0, start - BEFORE)
    return extract(document, _cut_before(document, first), at_least_to=end or start)


def extract(document: Document, start: int, *, at_least_to: int = 0) -> Extract:
    """The part of the text that begins at `start`, or at its end if it is shorter."""
    length = _length(document)
    start = min(start, length)
    wanted = max(start + PART, min(at_least_to, length))
    end = min(_cut_after(document, wanted, length), start + MOST_CHARACTERS)
    return Extract(_characters(document, start, end), start, end, length)


def extract_before(document: Document, end: int) -> Extract:
    """The part of the text that ends at `end`."""
    length = _length(document)
    end = min(end, length)
    start = max(_cut_before(document, max(0, end - PART)), end - MOST_CHARACTERS)
    return Extract(_characters(document, start, end), start, end, length)


def place_of(document: Document, position: int) -> Heading | None:
    """The section and page of the passage that `position` lies in."""
    rows = document.chunks.filter(start__lte=position).order_by("-position").values_list("section", "start", "page")
    found = rows.first()
    return None if found is None else Heading(found[0], found[0].count(SECTION_JOINT), found[1], found[2])


def outline_of(document: Document, *, near: int = 0) -> list[Heading]:
    """The headings in the order of the text, as far as they are known; for a document without any, its pages.

    Of very many those around `near`.
    """
    if document.media_type == MARKDOWN and _length(document) <= MOST_SCANNED:
        found = list(_markdown_headings(_characters(document, 0, MOST_SCANNED)))
    else:
        found = list(_chunk_headings(document))
    here = sum(heading.start <= near for heading in found)
    first = max(0, min(here - MOST_HEADINGS // 2, len(found) - MOST_HEADINGS))
    return found[first : first + MOST_HEADINGS]


def _markdown_headings(text: str) -> Iterator[Heading]:
    for match in _MARKDOWN_HEADING.finditer(text):
        if title := (match["title"] or "").strip(" \t\r#"):
            yield Heading(title, len(match["marks"]) - 1, match.start(), None)


def _chunk_headings(document: Document) -> Iterator[Heading]:
    """Each title of a passage's path when it comes anew, where the passage begins."""
    rows = list(document.chunks.order_by("position").values_list("section", "start", "page"))
    path: list[str] = []
    for section, start, page in rows:
        titles = section.split(SECTION_JOINT) if section else []
        same = next((level for level, pair in enumerate(zip(path, titles, strict=False)) if pair[0] != pair[1]), None)
        known = min(len(path), len(titles)) if same is None else same
        for level in range(known, len(titles)):
            yield Heading(titles[level], level, start, page)
        path = titles or path
    if not path:
        pages: dict[int, int] = {}
        for _, start, page in rows:
            if page:
                pages.setdefault(page, start)
        yield from (Heading(f"Page {page}", 0, start, page) for page, start in pages.items())


def _length(document: Document) -> int:
    return int(Document.objects.filter(pk=document.pk).values_list(Length("text"), flat=True).get())


def _characters(document: Document, start: int, end: int) -> str:
    taken = Substr(F("text"), start + 1, end - start)
    return str(Document.objects.filter(pk=document.pk).annotate(taken=taken).values_list("taken", flat=True).get())


def _cut_before(document: Document, position: int) -> int:
    found = Chunk.objects.filter(document=document, start__lte=position).aggregate(cut=Max("start"))["cut"]
    return int(found or 0)


def _cut_after(document: Document, position: int, length: int) -> int:
    if position >= length:
        return length
    found = Chunk.objects.filter(document=document, start__gte=position).aggregate(cut=Min("start"))["cut"]
    return length if found is None else int(found)
