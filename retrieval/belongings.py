"""Everything of one person in here: to take away with them, and to be gone when they go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from klerai.accounts.models import Person
from retrieval.bases import delete_knowledge_base
from retrieval.embedders.caching import forget_texts
from retrieval.models import Chunk, Document, Keyword, KnowledgeBase, WebResult
from retrieval.windows import windows_of

_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Gone:
    """What jobs may still name."""

    knowledge_bases: tuple[UUID, ...]
    documents: tuple[UUID, ...]


def own_knowledge_bases(person: Person) -> QuerySet[KnowledgeBase]:
    return KnowledgeBase.objects.filter(owner=person).order_by("slug")


def own_documents(person: Person) -> QuerySet[Document]:
    return Document.objects.filter(knowledge_base__owner=person)


def documents_in(knowledge_base: KnowledgeBase) -> Iterator[Document]:
    """Without their texts, so that a hundred of them are small."""
    return knowledge_base.documents.defer("text").order_by("created_at", "pk").iterator(chunk_size=100)


def text_of(document: Document) -> str:
    return Document.objects.filter(pk=document.pk).values_list("text", flat=True).first() or ""


def described(person: Person) -> list[dict[str, Any]]:
    """The knowledge bases and, of each document, what stands in the list of documents."""
    fields = ("id", "external_id", "title", "source", "media_type", "bytes", "status", "error", "created_at")
    return [
        {
            "slug": each.slug,
            "name": each.name,
            "created_at": each.created_at,
            "documents": list(each.documents.order_by("created_at", "pk").values(*fields)),
        }
        for each in own_knowledge_bases(person)
    ]


def web_results_of(person: Person) -> list[dict[str, Any]]:
    """What the web said, each with the keywords that lead to it."""
    return [
        {
            "id": each.ref,
            "query": each.query,
            "conversation_id": each.conversation_id,
            "question": each.question_ref,
            "text": each.text,
            "citations": each.citations,
            "keywords": sorted({link.keyword.text for link in each.links.all()}),
            "created_at": each.created_at,
        }
        for each in WebResult.objects.filter(person=person).order_by("created_at").prefetch_related("links__keyword")
    ]


def forget_person(person: Person) -> Gone:
    """Delete all of it, the cached vectors of the person's own texts included. Belongs to the caller's transaction."""
    gone = Gone(
        tuple(own_knowledge_bases(person).values_list("pk", flat=True)),
        tuple(own_documents(person).values_list("pk", flat=True)),
    )
    _forget_vectors(person)
    for knowledge_base in own_knowledge_bases(person):
        delete_knowledge_base(knowledge_base)
    WebResult.objects.filter(person=person).delete()
    Keyword.objects.filter(person=person).delete()
    return gone


def _forget_vectors(person: Person) -> None:
    """Whoever has the same text embeds it anew when it is next needed; what was embedded stays searchable."""
    mine = Chunk.objects.filter(knowledge_base__owner=person)
    batch: list[str] = []
    for text in mine.values_list("text", flat=True).iterator(chunk_size=_AT_ONCE):
        batch += windows_of(text)
        if len(batch) >= _AT_ONCE:
            forget_texts(batch)
            batch.clear()
    forget_texts(batch)
