"""Taking files in, and what may be done with a document from then on: queue it again, throw it away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction

from klerai.accounts.models import Person
from retrieval.ingestion.originals import Incoming
from retrieval.ingestion.passages import forget_passages
from retrieval.ingestion.queueing import queue
from retrieval.ingestion.titles import source_of, title_of
from retrieval.knowledge import written
from retrieval.models import DEFAULT_SLUG, Document, KnowledgeBase, OriginalPiece
from retrieval.quotas import Quota, refuse_beyond


class Outcome(StrEnum):
    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A document that was taken in. One that is unchanged was left as it is, unless it had failed before."""

    document: Document
    outcome: Outcome


@transaction.atomic
def accept_upload(
    person: Person | None, slug: str, name: str, pieces: Iterable[bytes], *, quota: Quota | None = None
) -> Document:
    """Store a file and queue its reading, in one transaction.

    Raises NoSuchKnowledgeBase, FileTooLarge and QuotaPassed; then nothing is kept.
    """
    accepted = accept(written(person, slug or DEFAULT_SLUG), name, pieces)
    hold_to(quota, person, [accepted])
    return accepted.document


def hold_to(quota: Quota | None, person: Person | None, accepted: Iterable[Accepted]) -> None:
    """For the end of the transaction that accepted these. Raises QuotaPassed, not for files that were there already."""
    has_grown = any(each.outcome != Outcome.UNCHANGED for each in accepted)
    if quota is not None and person is not None and has_grown:
        refuse_beyond(quota, person)


@transaction.atomic
def accept(knowledge_base: KnowledgeBase, name: str, pieces: Iterable[bytes], *, is_queued: bool = True) -> Accepted:
    """Like `accept_upload`, for a knowledge base that may be written; without `is_queued` the caller reads it itself.

    The same name with other content becomes the next version of the document: what was found in the one before is
    found until the new one is ready. Raises FileTooLarge.
    """
    incoming = begin(knowledge_base, name)
    for piece in pieces:
        incoming.write(piece)
    return finish(incoming, is_queued=is_queued)


def begin(knowledge_base: KnowledgeBase, name: str) -> Incoming:
    """For files that come in pushed, not pulled: write to it, then `finish` it, all inside one transaction."""
    fields = {"title": title_of(name), "source": source_of(name), "bytes": 0}
    return Incoming(Document.objects.create(knowledge_base=knowledge_base, **fields))


def finish(incoming: Incoming, *, is_queued: bool = True) -> Accepted:
    """The document it became."""
    incoming.finish()
    fresh = incoming.document
    # Two files of one name that arrive together become two versions, not two documents.
    KnowledgeBase.objects.select_for_update(no_key=True).get(pk=fresh.knowledge_base_id)
    siblings = Document.objects.filter(
        knowledge_base=fresh.knowledge_base_id, source=fresh.source, external_id=""
    ).exclude(pk=fresh.pk)
    known = siblings.defer("text").select_for_update(of=("self",)).order_by("created_at").first()
    begins = known is None or known.sha256 != fresh.sha256 or known.status == Document.Status.FAILED
    accepted = Accepted(fresh, Outcome.ADDED) if known is None else _merge(fresh, known)
    if begins and is_queued:
        queue(accepted.document.pk)
    return accepted


@transaction.atomic
def retry_document(document: Document) -> Document:
    """Queue a document that failed once more; any other is left as it is."""
    found = Document.objects.select_for_update(of=("self",)).defer("text").get(pk=document.pk)
    if found.status == Document.Status.FAILED:
        _begin_again(found)
        queue(found.pk)
    return found


@transaction.atomic
def delete_document(document: Document) -> None:
    """With its passages, their vectors and postings, and the original. Deleting twice is deleting once."""
    found = Document.objects.select_for_update(of=("self",)).defer("text").filter(pk=document.pk).first()
    if found is None:
        return
    forget_passages([found])
    OriginalPiece.objects.filter(document=found)._raw_delete(using="default")
    found.delete()


def _merge(fresh: Document, known: Document) -> Accepted:
    """Give what has come in to the document of that name."""
    if known.sha256 == fresh.sha256:
        fresh.delete()
        if known.status == Document.Status.FAILED:
            _begin_again(known)
        return Accepted(known, Outcome.UNCHANGED)
    OriginalPiece.objects.filter(document=known)._raw_delete(using="default")
    OriginalPiece.objects.filter(document=fresh).update(document=known)
    known.sha256, known.bytes, known.title = fresh.sha256, fresh.bytes, fresh.title
    fresh.delete()
    _begin_again(known)
    return Accepted(known, Outcome.REPLACED)


def _begin_again(document: Document) -> None:
    document.status, document.progress, document.error = Document.Status.QUEUED, 0, ""
    document.save(update_fields=["status", "progress", "error", "sha256", "bytes", "title", "updated_at"])
