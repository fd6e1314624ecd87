"""The one gate to knowledge: every row anybody reads or writes comes through a function that takes the person."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q, QuerySet

from klerai.accounts.models import Person
from retrieval.errors import NoSuchDocument, NoSuchKnowledgeBase
from retrieval.models import DEFAULT_SLUG, Document, KnowledgeBase


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


def documents_of(person: Person | None) -> QuerySet[Document]:
    """Every document a person may read."""
    return Document.objects.filter(knowledge_base__in=knowledge_bases_of(person).order_by())


def document_of(person: Person | None, document_id: UUID) -> Document:
    """Raises NoSuchDocument."""
    found = documents_of(person).filter(pk=document_id).select_related("knowledge_base").first()
    if found is None:
        raise NoSuchDocument
    return found


def written(person: Person | None, slug: str = DEFAULT_SLUG) -> KnowledgeBase:
    """The knowledge base a person may write under this slug; their default one comes into being with its first use.

    Without a person it is the operator who writes a shared one. Raises NoSuchKnowledgeBase.
    """
    own = KnowledgeBase.objects.filter(owner=person, slug=slug)
    if slug != DEFAULT_SLUG and person is not None:
        found = own.first()
        if found is None:
            raise NoSuchKnowledgeBase(slug)
        return found
    name = "My documents" if person is not None else "Shared documents" if slug == DEFAULT_SLUG else slug
    return KnowledgeBase.objects.get_or_create(owner=person, slug=slug, defaults={"name": name})[0]


def filled_by_operator(person: Person | None, slug: str = DEFAULT_SLUG) -> KnowledgeBase:
    """What a command writes under this slug, the person's or a shared one; it comes into being with its first use."""
    if person is None or slug == DEFAULT_SLUG:
        return written(person, slug)
    return KnowledgeBase.objects.get_or_create(owner=person, slug=slug, defaults={"name": slug})[0]
