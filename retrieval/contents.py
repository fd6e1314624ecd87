"""How much there is: the documents and passages of knowledge bases, counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from retrieval.models import Chunk, Document, KnowledgeBase


@dataclass(frozen=True, slots=True)
class Contents:
    """How much is in a knowledge base: documents by how far they are, and the passages of those that are ready."""

    ready: int = 0
    in_progress: int = 0
    failed: int = 0
    passages: int = 0


def chunk_counts(documents: Iterable[Document]) -> dict[UUID, int]:
    """How many passages each of these has; none are named for those without."""
    counted = Chunk.objects.filter(document__in=[document.pk for document in documents]).values("document_id")
    return {row["document_id"]: row["chunks"] for row in counted.annotate(chunks=Count("pk"))}


def contents_of(knowledge_bases: Iterable[KnowledgeBase]) -> dict[UUID, Contents]:
    """What each of these holds; none are named for those that hold nothing."""
    keys = [each.pk for each in knowledge_bases]
    is_ready, is_failed = Q(status=Document.Status.READY), Q(status=Document.Status.FAILED)
    documents = Document.objects.filter(knowledge_base__in=keys).values("knowledge_base_id")
    counted = documents.annotate(
        ready=Count("pk", filter=is_ready),
        failed=Count("pk", filter=is_failed),
        in_progress=Count("pk", filter=~(is_ready | is_failed)),
    )
    chunks = Chunk.objects.filter(knowledge_base__in=keys).values("knowledge_base_id").annotate(passages=Count("pk"))
    passages = {row["knowledge_base_id"]: row["passages"] for row in chunks}
    return {
        row["knowledge_base_id"]: Contents(
            row["ready"], row["in_progress"], row["failed"], passages.get(row["knowledge_base_id"], 0)
        )
        for row in counted
    }
