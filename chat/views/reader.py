"""The document reader: opens at a passage, with as much text around it as can be read at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.views.document_lists import kind_of
from chat.views.frame import framed, person_of
from chat.views.passage_text import Block, Range, blocks_of
from retrieval.contents import chunk_counts
from retrieval.errors import RetrievalError
from retrieval.extracts import MARKDOWN, Heading, extract, extract_around, extract_before, outline_of, place_of
from retrieval.ingestion.accept import delete_document, retry_document
from retrieval.knowledge import Document, document_of, written_document

_PLACES = ("at", "from", "until")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the text in blocks; `at` is the block where the reader was sent to."""

    blocks: list[Block]
    start: int
    end: int
    length: int
    at: int | None
    earlier: str
    later: str

    @property
    def share(self) -> int:
        """How far into the document it ends, in per cent."""
        return round(100 * self.end / self.length) if self.length else 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the outline."""

    title: str
    level: int
    page: int | None
    url: str
    is_here: bool


@never_cache
@login_required
@require_safe
def document(request: HttpRequest, slug: str, document_id: UUID) -> HttpResponse:
    """`?start=&end=` is the passage; `?at=` a place of the outline; `?from=` and `?until=` go on reading."""
    found = _found(request, slug, document_id)
    marked = _marked(request)
    is_part = request.headers.get("X-Requested-With") == "fetch"
    place = marked.start if marked.end else next((n for n in map(partial(_number, request), _PLACES) if n), 0)
    outline = [] if is_part and found.media_type == MARKDOWN else outline_of(found, near=place)
    part = _part(request, found, marked, outline)
    if is_part:
        return render(request, "knowledge/part.html", {"part": part})
    context = {
        "document": found,
        "base": found.knowledge_base,
        "is_shared": found.knowledge_base.owner_id is None,
        "kind": kind_of(found),
        "passages": chunk_counts([found]).get(found.pk, 0),
        "has_original": not found.external_id,
        "part": part,
        "outline": _entries(outline, place),
        "place": place_of(found, marked.start) if marked.end else None,
        "zone": person_of(request).time_zone,
    }
    return framed(request, "knowledge/document.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Asks, and on POST deletes."""
    found = _written(request, slug, document_id)
    if request.method != "POST":
        return framed(request, "knowledge/delete.html", {"document": found, "base": found.knowledge_base})
    title = found.title
    delete_document(found)
    messages.success(request, f"“{title}” was deleted.")
    return redirect("knowledge-base", slug)


@login_required
@require_POST
def retry(request: HttpRequest, slug: str, document_id: UUID) -> HttpResponse:
    retry_document(_written(request, slug, document_id))
    return redirect("knowledge-base", slug)


def _found(request: HttpRequest, slug: str, document_id: UUID) -> Document:
    try:
        found = document_of(person_of(request), document_id)
    except RetrievalError as error:
        raise Http404 from error
    if found.knowledge_base.slug != slug:
        raise Http404
    return found


def _written(request: HttpRequest, slug: str, document_id: UUID) -> Document:
    _found(request, slug, document_id)
    try:
        return written_document(person_of(request), document_id)
    except RetrievalError as error:
        raise Http404 from error


def _part(request: HttpRequest, found: Document, marked: Range, outline: list[Heading]) -> Part:
    first, until, at = (_number(request, name) for name in ("from", "until", "at"))
    if until is not None:
        shown = extract_before(found, until)
    elif first is not None:
        shown = extract(found, first)
    elif at is not None:
        shown = extract_around(found, at)
    else:
        shown = extract_around(found, marked.start, marked.end)
    titles = {" ".join(heading.title.split()) for heading in outline}
    blocks = blocks_of(shown.text, offset=shown.start, media_type=found.media_type, marked=marked, headings=titles)
    return Part(
        blocks,
        shown.start,
        shown.end,
        shown.length,
        at=_block_at(blocks, at),
        earlier=_address(marked, until=shown.start) if shown.start else "",
        later=_address(marked, **{"from": shown.end}) if shown.end < shown.length else "",
    )


def _block_at(blocks: list[Block], at: int | None) -> int | None:
    """Where the last block begins that begins no later than `at`."""
    return None if at is None else max((block.start for block in blocks if block.start <= at), default=None)


def _entries(outline: list[Heading], here: int) -> list[Entry]:
    current = max((heading.start for heading in outline if heading.start <= here), default=-1)
    top = min((heading.level for heading in outline), default=0)
    return [
        Entry(
            heading.title,
            min(heading.level - top, 3),
            heading.page,
            f"{_address(Range(0, 0), at=heading.start)}#here",
            heading.start == current,
        )
        for heading in outline
    ]


def _address(marked: Range, **more: int) -> str:
    passage = {"start": marked.start, "end": marked.end} if marked.end else {}
    return f"?{urlencode({**passage, **more})}"


def _marked(request: HttpRequest) -> Range:
    start, end = _number(request, "start"), _number(request, "end")
    return Range(start, end) if start is not None and end is not None and start < end else Range(0, 0)


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


urlpatterns = [
    path("knowledge/<slug:slug>/documents/<uuid:document_id>/", document, name="knowledge-document"),
    path("knowledge/<slug:slug>/documents/<uuid:document_id>/delete/", delete, name="knowledge-document-delete"),
    path("knowledge/<slug:slug>/documents/<uuid:document_id>/retry/", retry, name="knowledge-document-retry"),
]
