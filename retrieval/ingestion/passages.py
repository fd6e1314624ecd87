"""Passages become visible here: chunks, what is found by keyword and what is found by vector, all at once or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from retrieval.embedders.base import Vector
from retrieval.ingestion.chunking import Span
from retrieval.keyword_index import forget_document, index_chunks
from retrieval.models import Chunk, Document, KnowledgeBase, Window

READY_FIELDS = ("text", "media_type", "lacks_vectors", "status", "progress", "error", "updated_at")
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """What one embedder said of the windows of each passage."""

    embedder: str
    by_passage: Sequence[Sequence[Vector]]


@dataclass(frozen=True, slots=True)
class Passages:
    """A document's text, cut and embedded. Without vectors it is found by its words, and embedded later if it lacks."""

    document: Document
    text: str
    media_type: str
    spans: Sequence[Span]
    vectors: Vectors | None
    lacks_vectors: bool = False

    def mark_ready(self) -> None:
        """Let the document say so; saving its READY_FIELDS is the caller's."""
        document = self.document
        document.text, document.media_type, document.lacks_vectors = self.text, self.media_type, self.lacks_vectors
        document.status, document.progress, document.error = Document.Status.READY, 100, ""


@transaction.atomic
def show_passages(knowledge_base: KnowledgeBase, found: Sequence[Passages]) -> None:
    """Put these in the place of what each document had before. Their rows are locked and say that they are ready."""
    forget_passages([each.document for each in found])
    chunks = [list(_chunks(each)) for each in found]
    rows = [chunk for chunks_of_one in chunks for chunk in chunks_of_one]
    Chunk.objects.bulk_create(rows, batch_size=_AT_ONCE)
    for start in range(0, len(rows), _AT_ONCE):
        index_chunks(knowledge_base, rows[start : start + _AT_ONCE])
    for each, chunks_of_one in zip(found, chunks, strict=True):
        if each.vectors is not None:
            write_windows(knowledge_base, chunks_of_one, each.vectors)


def write_windows(knowledge_base: KnowledgeBase, chunks: Sequence[Chunk], vectors: Vectors) -> None:
    """Inside the caller's transaction; chunks that have windows of this embedder already keep them."""
    rows = (
        Window(knowledge_base=knowledge_base, chunk=chunk, embedder=vectors.embedder, position=place, vector=vector)
        for chunk, of_chunk in zip(chunks, vectors.by_passage, strict=True)
        for place, vector in enumerate(of_chunk)
    )
    Window.objects.bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
    KnowledgeBase.objects.filter(pk=knowledge_base.pk, embedder="").update(embedder=vectors.embedder)


def forget_passages(documents: Iterable[Document]) -> None:
    """Inside the caller's transaction."""
    keys = [document.pk for document in documents]
    had = list(
        Chunk.objects.filter(document__in=keys).values_list("document", flat=True).distinct().order_by("document")
    )
    for key in had:
        forget_document(key)
    if had:
        Window.objects.filter(chunk__document__in=had)._raw_delete(using="default")
        Chunk.objects.filter(document__in=had)._raw_delete(using="default")


def _chunks(found: Passages) -> Iterable[Chunk]:
    for position, span in enumerate(found.spans):
        yield Chunk(
            knowledge_base_id=found.document.knowledge_base_id,
            document=found.document,
            position=position,
            section=span.section,
            text=found.text[span.start : span.end],
            start=span.start,
            end=span.end,
            page=span.page,
        )
