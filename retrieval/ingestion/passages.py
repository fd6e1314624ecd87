"""Passages become visible here: chunks, what is found by keyword and what is found by vector, all at once or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from retrieval.embedders.base import Vector
from retrieval.ingestion.chunking import Span
from retrieval.keyword_index import forget_document, index_chunks
from retrieval.models import Chunk, Document, KnowledgeBase, Window
from retrieval.window_vectors import store_windows

READY_FIELDS = ("text", "media_type", "lacks_vectors", "status", "progress", "error", "updated_at")
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """What one embedder said of the windows of each passage, those of several documents one after the other."""

    embedder: str
    by_passage: Sequence[Sequence[Vector]]


@dataclass(frozen=True, slots=True)
class Passages:
    """A document's text and where it is cut. When it lacks vectors it is found by its words, and embedded later."""

    document: Document
    text: str
    media_type: str
    spans: Sequence[Span]
    lacks_vectors: bool = False

    def mark_ready(self) -> None:
        """Let the document say so; saving its READY_FIELDS is the caller's."""
        document = self.document
        document.text, document.media_type, document.lacks_vectors = self.text, self.media_type, self.lacks_vectors
        document.status, document.progress, document.error = Document.Status.READY, 100, ""


@transaction.atomic
def show_passages(knowledge_base: KnowledgeBase, found: Sequence[Passages], vectors: Vectors | None) -> None:
    """Put these in the place of what each document had before. Their rows are locked and say that they are ready."""
    forget_passages([each.document for each in found])
    chunks = [chunk for each in found for chunk in _chunks(each)]
    Chunk.objects.bulk_create(chunks, batch_size=_AT_ONCE)
    for start in range(0, len(chunks), _AT_ONCE):
        index_chunks(knowledge_base, chunks[start : start + _AT_ONCE])
    if vectors is not None and not show_vectors(knowledge_base, [chunk.pk for chunk in chunks], vectors):
        documents = [each.document.pk for each in found]
        Document.objects.filter(pk__in=documents).update(lacks_vectors=True)


def show_vectors(knowledge_base: KnowledgeBase, chunk_ids: Sequence[int], vectors: Vectors) -> bool:
    """Whether the knowledge base is searched by this embedder still. A new one is from its first vectors on."""
    pairs = zip(chunk_ids, vectors.by_passage, strict=True)
    rows = [(chunk_id, vector) for chunk_id, of_chunk in pairs for vector in of_chunk]
    live = store_windows(knowledge_base.pk, vectors.embedder, rows)
    if not live:
        KnowledgeBase.objects.filter(pk=knowledge_base.pk, embedder="").update(embedder=vectors.embedder)
        knowledge_base.refresh_from_db(fields=["embedder"])
        live = knowledge_base.embedder
    return live == vectors.embedder


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
