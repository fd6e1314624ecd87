"""How much a person may keep in their knowledge bases, and how much they do."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.models import Count, Sum

from klerai.accounts.models import Person
from retrieval.errors import QuotaPassed
from retrieval.models import Document


@dataclass(frozen=True, slots=True)
class Quota:
    """The most there may be; None is no limit. `plan` is what sets it, in words."""

    plan: str
    documents: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What there is in all knowledge bases of a person: documents, whatever became of them, and their originals."""

    documents: int
    bytes: int


def kept_by(person: Person) -> Kept:
    counted = Document.objects.filter(knowledge_base__owner=person).aggregate(documents=Count("pk"), bytes=Sum("bytes"))
    return Kept(counted["documents"], counted["bytes"] or 0)


def refuse_beyond(quota: Quota, person: Person) -> None:
    """Raises QuotaPassed when the person keeps more than that.

    For the end of a transaction that adds something: until it is over, no other one of the person gets past here.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"quota:{person.pk}"])
    kept = kept_by(person)
    if quota.documents is not None and kept.documents > quota.documents:
        raise QuotaPassed(person, "documents", plan=quota.plan, most=quota.documents)
    if quota.bytes is not None and kept.bytes > quota.bytes:
        raise QuotaPassed(person, "storage", plan=quota.plan, most=quota.bytes)
