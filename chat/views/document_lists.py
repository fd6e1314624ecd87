"""The documents of a knowledge base in words: in progress, could not be added, ready."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from retrieval.contents import chunk_counts
from retrieval.knowledge import Document, KnowledgeBase

SHOWN = 50
MOST_SHOWN = 1_000
MOST_WAITING = 50

_KINDS = {
    "text/markdown": "Markdown",
    "text/html": "HTML",
    "text/csv": "CSV",
    "text/tab-separated-values": "Table",
    "text/plain": "Text",
    "application/pdf": "PDF",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
    "application/x-ndjson": "JSONL",
    "application/jsonl": "JSONL",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A document in a list."""

    id: UUID
    title: str
    kind: str
    passages: int
    bytes: int
    added_at: datetime
    progress: int
    step: str
    error: str
    has_original: bool


@dataclass(frozen=True, slots=True)
class Lists:
    """What the page shows; `more` of those ready are left for `?shown=`."""

    waiting: tuple[Line, ...]
    waiting_count: int
    failed: tuple[Line, ...]
    failed_count: int
    ready: tuple[Line, ...]
    ready_count: int
    find: str
    more: int

    @property
    def is_empty(self) -> bool:
        return not (self.waiting_count or self.failed_count or self.ready_count or self.find)


def lists_of(base: KnowledgeBase, *, find: str = "", shown: str = "") -> Lists:
    """`find` are words of the title, `shown` how many of those that are ready."""
    find = find.strip()[:200].replace("\x00", "")
    most = min(max(int(shown), SHOWN), MOST_SHOWN) if shown.isdecimal() and len(shown) < 6 else SHOWN
    documents = base.documents.defer("text")
    waiting = documents.filter(status__in=[Document.Status.QUEUED, Document.Status.PROCESSING])
    failed = documents.filter(status=Document.Status.FAILED)
    ready = documents.filter(status=Document.Status.READY)
    if find:
        ready = ready.filter(title__icontains=find)
    ready_count = ready.count()
    return Lists(
        waiting=_lines(waiting.order_by("created_at", "pk")[:MOST_WAITING]),
        waiting_count=waiting.count(),
        failed=_lines(failed.order_by("-created_at", "pk")[:MOST_WAITING]),
        failed_count=failed.count(),
        ready=_lines(ready.order_by("-created_at", "pk")[:most]),
        ready_count=ready_count,
        find=find,
        more=max(0, ready_count - most),
    )


def kind_of(document: Document) -> str:
    return _KINDS.get(document.media_type, "") or document.source.rpartition(".")[2][:8].upper() or "File"


def _lines(documents: Iterable[Document]) -> tuple[Line, ...]:
    documents = list(documents)
    passages = chunk_counts(documents)
    return tuple(_line(document, passages.get(document.pk, 0)) for document in documents)


def _line(document: Document, passages: int) -> Line:
    return Line(
        id=document.pk,
        title=document.title,
        kind=kind_of(document),
        passages=passages,
        bytes=document.bytes,
        added_at=document.created_at,
        progress=document.progress,
        step=_step(document),
        error=document.error,
        has_original=not document.external_id,
    )


def _step(document: Document) -> str:
    if document.status == Document.Status.QUEUED:
        return "Waiting for its turn"
    return f"Reading and indexing, {document.progress} %"
