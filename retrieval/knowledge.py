"""The one gate to knowledge: every row anybody reads or writes comes through a function that takes the person."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q, QuerySet

from klerai.accounts.models import Person
from retrieval.errors import NoSuchDocument, NoSuchKnowledgeBase, SharedIsReadOnly
from retrieval.models import DEFAULT_SLUG as DEFAULT_SLUG
from retrieval.models import Document as Document
from retrieval.models import KnowledgeBase as KnowledgeBase

DEFAULT_NAME = "My documents"


def knowledge_bases_of(person: Person | None) -> QuerySet[KnowledgeBase]:
    """All that a person may read, their own first; without a person the shared ones."""
    mine = Q(owner=person) if person is not None else Q(pk__in=[])
    return KnowledgeBase.objects.filter(mine | Q(owner=None)).order_by(F("owner").asc(nulls_last=True), "name", "pk")


def searched(person: Person | None, slug: str = DEFAULT_SLUG) -> list[KnowledgeBase]:
    """What a search in `slug` reads: `default_kb` is everything the person may read.

    Raises NoSuchKnowledgeBase.
    """
    readable = knowledge_bases_of(person).select_related("statistics")
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


def documents_listed(person: Person | None, slug: str = DEFAULT_SLUG) -> QuerySet[Document]:
    """The documents that stand in `slug` itself: of `default_kb`, in the person's own and in the shared one.

    Raises NoSuchKnowledgeBase.
    """
    if slug == DEFAULT_SLUG:
        return documents_of(person).filter(knowledge_base__slug=slug)
    return documents_in(person, slug)


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


def filled_by_operator(person: Person | None, slug: str = DEFAULT_SLUG) -> KnowledgeBase:
    """What a command writes under this slug, the person's or a shared one; it comes into being with its first use."""
    if person is None or slug == DEFAULT_SLUG:
        return written(person, slug)
    return KnowledgeBase.objects.get_or_create(owner=person, slug=slug, defaults={"name": slug})[0]


def written_document(person: Person, document_id: UUID) -> Document:
    """A document the person may change. Raises NoSuchDocument, and SharedIsReadOnly for one they may only read."""
    found = document_of(person, document_id)
    if found.knowledge_base.owner_id != person.pk:
        raise SharedIsReadOnly
    return found
