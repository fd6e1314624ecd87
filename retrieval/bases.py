"""Knowledge bases come, get another name, and go."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from klerai.accounts.models import Person
from retrieval.errors import NameRefused
from retrieval.ingestion.accept import delete_document
from retrieval.knowledge import knowledge_bases_of
from retrieval.models import DEFAULT_SLUG, KnowledgeBase

MOST_KNOWLEDGE_BASES = 100
NAME_CHARACTERS = 120
SLUG_CHARACTERS = 64


def make_knowledge_base(person: Person, *, name: str, slug: str = "") -> KnowledgeBase:
    """A new one of the person's, under a slug made from its name unless one is given. Raises NameRefused."""
    name = _checked(name)
    if KnowledgeBase.objects.filter(owner=person).count() >= MOST_KNOWLEDGE_BASES:
        raise NameRefused(
            "name", f"You have {MOST_KNOWLEDGE_BASES} knowledge bases; that is the most. Delete one first."
        )
    if slug and slug == DEFAULT_SLUG:
        raise NameRefused("slug", f"“{DEFAULT_SLUG}” is there already: it is where documents go that name no other.")
    try:
        with transaction.atomic():
            return KnowledgeBase.objects.create(owner=person, slug=slug or _free_slug(person, name), name=name)
    except IntegrityError as error:
        raise NameRefused("slug" if slug else "name", "You already have a knowledge base of this name.") from error


def rename(knowledge_base: KnowledgeBase, name: str) -> None:
    """Another name; addresses stay as they are. Raises NameRefused."""
    knowledge_base.name = _checked(name)
    knowledge_base.save(update_fields=["name"])


def delete_knowledge_base(knowledge_base: KnowledgeBase) -> None:
    """With all its documents, one after the other, so that a large one never holds others up; may be done again."""
    for document in knowledge_base.documents.defer("text").iterator(chunk_size=100):
        delete_document(document)
    knowledge_base.delete()


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise NameRefused("name", "Give it a name.")
    if len(name) > NAME_CHARACTERS:
        raise NameRefused("name", f"A name has at most {NAME_CHARACTERS} characters; this one has {len(name)}.")
    if any(not character.isprintable() for character in name):
        raise NameRefused("name", "This name contains a character that cannot be shown.")
    return name


def _free_slug(person: Person, name: str) -> str:
    """The name in lower-case letters, with a number when the person can read something under it already."""
    wanted = slugify(name)[: SLUG_CHARACTERS - 4].strip("-") or "knowledge-base"
    taken = {DEFAULT_SLUG, *knowledge_bases_of(person).filter(slug__startswith=wanted).values_list("slug", flat=True)}
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (wanted, *numbered) if slug not in taken)
