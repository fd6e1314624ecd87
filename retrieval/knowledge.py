"""The one gate to knowledge: every row anybody reads or writes comes through a function that takes the person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from klerai.accounts.models import Person
from retrieval.errors import NoSuchDocument, NoSuchKnowledgeBase, SharedIsReadOnly
from retrieval.models import DEFAULT_SLUG as DEFAULT_SLUG
from retrieval.models import Chunk
from retrieval.models import Document as Document
from retrieval.models import KnowledgeBase as KnowledgeBase

DEFAULT_NAME = "My documents"


@dataclass(frozen=True, slots=True)
class Contents:
    """How much is in a knowledge base: documents by how far they are, and the passages of those that are ready."""

    ready: int = 0
    in_progress: int = 0
    failed: int = 0
    passages: int = 0


def knowledge_bases_of(person: Person | None) -> QuerySet[KnowledgeBase]:
    """All that a person may read, their own first; without a person the shared ones."""
    mine = Q(owner=person) if person is not None else Q(pk__in=[])
    return KnowledgeBase.objects.filter(mine | Q(owner=None)).order_by(F("owner").asc(nulls_last=True), "name", "pk")


def searched(person: Person | None, slug: str = DEFAULT_SLUG) -> list[KnowledgeBase]:
    """What a search in `slug` reads: `default_kb` is everything the person may read.

    Raises NoSuchKnowledgeBase.
    """
    readable = knowledge_bases_of(person)
    if slug == DEFAULT_SLUG:
        return list(readable)
    found = readable.filter(slug=slug).first()
    if found is None:
        raise NoSuchKnowledgeBase(slug)
    return [found]


def read(person: Person, slug: str = DEFAULT_SLUG, *, is_shared: bool = False) -> KnowledgeBase:
    """One that the person may read: their own, else the shared one; `is_shared` asks for the shared one.

    Their default one can be read before it comes into being. Raises NoSuchKnowledgeBase.
    """
    readable = knowledge_bases_of(person).filter(slug=slug)
    found = readable.filter(owner=None).first() if is_shared else readable.first()
    if slug == DEFAULT_SLUG and not is_shared and (found is None or found.owner_id is None):
        return KnowledgeBase(owner=person, slug=slug, name=DEFAULT_NAME)
    if found is None:
        raise NoSuchKnowledgeBase(slug)
    return found


def documents_of(person: Person | None) -> QuerySet[Document]:
    """Every document a person may read."""
    return Document.objects.filter(knowledge_base__in=knowledge_bases_of(person).order_by())


def documents_in(person: Person | None, slug: str = DEFAULT_SLUG) -> QuerySet[Document]:
    """The documents a search in `slug` reads. Raises NoSuchKnowledgeBase."""
    return Document.objects.filter(knowledge_base__in=searched(person, slug))


def document_of(person: Person | None, document_id: UUID) -> Document:
    """Raises NoSuchDocument."""
    found = documents_of(person).filter(pk=document_id).select_related("knowledge_base").first()
    if found is None:
        raise NoSuchDocument
    return found


def written(person: Person | None, slug: str = DEFAULT_SLUG) -> KnowledgeBase:
    """The knowledge base a person may write under this slug; their default one comes into being with its first use.

    Without a person it is the operator who writes a shared one. Raises NoSuchKnowledgeBase, and SharedIsReadOnly for
    one that the person may only read.
    """
    own = KnowledgeBase.objects.filter(owner=person, slug=slug)
    if slug != DEFAULT_SLUG and person is not None:
        found = own.first()
        if found is None:
            raise SharedIsReadOnly if KnowledgeBase.objects.filter(owner=None, slug=slug) else NoSuchKnowledgeBase(slug)
        return found
    name = DEFAULT_NAME if person is not None else "Shared documents" if slug == DEFAULT_SLUG else slug
    return KnowledgeBase.objects.get_or_create(owner=person, slug=slug, defaults={"name": name})[0]


def written_document(person: Person, document_id: UUID) -> Document:
    """A document the person may change. Raises NoSuchDocument, and SharedIsReadOnly for one they may only read."""
    found = document_of(person, document_id)
    if found.knowledge_base.owner_id != person.pk:
        raise SharedIsReadOnly
    return found


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


def filled_by_operator(person: Person | None, slug: str = DEFAULT_SLUG) -> KnowledgeBase:
    """What a command writes under this slug, the person's or a shared one; it comes into being with its first use."""
    if person is None or slug == DEFAULT_SLUG:
        return written(person, slug)
    return KnowledgeBase.objects.get_or_create(owner=person, slug=slug, defaults={"name": slug})[0]
