"""From a queued document to one that is found: read, embed, and then show all of it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from klerai.database import in_database
from klerai.failpoints import failpoint
from retrieval.errors import EmbedderFailed, UnreadableFile
from retrieval.ingestion.embedding import embedded
from retrieval.ingestion.originals import spooled
from retrieval.ingestion.passages import READY_FIELDS, Passages, Vectors, show_passages, show_vectors
from retrieval.ingestion.reading import Reading, read_confined
from retrieval.models import Chunk, Document
from retrieval.signals import document_ready

STARTED, READ, EMBEDDED = 1, 10, 80  # per cent
UNFINISHED = (Document.Status.QUEUED, Document.Status.PROCESSING)
EARLIER_VERSION = "What was found in the version before is still found."
logger = structlog.get_logger(__name__)


async def process(document_id: UUID) -> None:
    """Read a document that waits and make it found, or failed with a reason. Nothing of it is seen before the end.

    May be begun anew at any time, by this process or another; the second to finish finds nothing left to do.
    """
    document = await in_database(_begin, document_id)
    if document is None:
        return
    failpoint("ingestion_begun")
    try:
        reading = await in_database(_read, document)
    except UnreadableFile as error:
        await in_database(fail, document, str(error))
        return
    await in_database(_note_progress, document, READ)
    failpoint("ingestion_read")
    texts = [reading.text[span.start : span.end] for span in reading.spans]
    vectors, lacks_vectors = await _embedded(document, texts)
    failpoint("ingestion_embedded")
    passages = Passages(document, reading.text, reading.media_type, reading.spans, lacks_vectors)
    await in_database(_show, passages, vectors)
    failpoint("ingestion_shown")


async def embed_later(document_id: UUID) -> bool:
    """Give a document that lacks them its vectors; whether it has them now."""
    documents = Document.objects.select_related("knowledge_base").defer("text")
    document = await in_database(documents.filter(pk=document_id).first)
    if document is None:
        return True
    chunks = await in_database(list, Chunk.objects.filter(document=document).order_by("position"))
    vectors, lacks_vectors = await _embedded(document, [chunk.text for chunk in chunks])
    if lacks_vectors:
        return False
    await in_database(_add_vectors, document, chunks, vectors)
    return True


@transaction.atomic
def fail(document: Document, reason: str) -> None:
    """Say why a version of a document cannot be read; what an earlier version shows is left as it is."""
    found = _same_version(document)
    if found is None:
        return
    if Chunk.objects.filter(document=found).exists():
        reason = f"{reason} {EARLIER_VERSION}"
    found.status, found.progress, found.error = Document.Status.FAILED, 0, reason
    found.save(update_fields=["status", "progress", "error", "updated_at"])
    logger.info("document_failed", document=str(found.pk), reason=reason)


async def _embedded(document: Document, texts: Sequence[str]) -> tuple[Vectors | None, bool]:
    """The vectors, and whether they are missing though there should be some."""

    async def note(share: float) -> None:
        await in_database(_note_progress, document, READ + int(share * (EMBEDDED - READ)))
        failpoint("ingestion_embedding")

    try:
        return await embedded(document.knowledge_base, texts, note=note), False
    except EmbedderFailed as error:
        logger.warning("document_not_embedded", document=str(document.pk), reason=str(error))
        return None, True


@transaction.atomic
def _begin(document_id: UUID) -> Document | None:
    documents = Document.objects.select_related("knowledge_base").defer("text").select_for_update(of=("self",))
    document = documents.filter(pk=document_id).first()
    if document is None or document.status not in UNFINISHED:
        return None
    document.status, document.progress = Document.Status.PROCESSING, STARTED
    document.save(update_fields=["status", "progress", "updated_at"])
    return document


def _read(document: Document) -> Reading:
    with spooled(document) as original:
        return read_confined(original, document.title)


def _note_progress(document: Document, percent: int) -> None:
    """Seen at once. Says also that somebody is at work."""
    same = Document.objects.filter(pk=document.pk, sha256=document.sha256, status=Document.Status.PROCESSING)
    same.update(progress=percent, updated_at=timezone.now())


@transaction.atomic
def _show(passages: Passages, vectors: Vectors | None) -> None:
    document = passages.document
    if _same_version(document) is None:
        return
    passages.mark_ready()
    document.save(update_fields=READY_FIELDS)
    show_passages(document.knowledge_base, [passages], vectors)
    failpoint("ingestion_shown_uncommitted")
    transaction.on_commit(lambda: document_ready.send(sender=Document, document_id=document.pk))


def _same_version(document: Document) -> Document | None:
    """Locked; None when it was deleted, has a newer version, or was finished by somebody else."""
    found = Document.objects.select_for_update(of=("self",)).defer("text").filter(pk=document.pk).first()
    if found is None or found.sha256 != document.sha256 or found.status not in UNFINISHED:
        return None
    return found


@transaction.atomic
def _add_vectors(document: Document, chunks: Sequence[Chunk], vectors: Vectors | None) -> None:
    found = Document.objects.select_for_update(of=("self",)).defer("text").filter(pk=document.pk).first()
    if found is None or found.sha256 != document.sha256 or not found.lacks_vectors:
        return
    has_them = vectors is None or show_vectors(document.knowledge_base, [chunk.pk for chunk in chunks], vectors)
    found.lacks_vectors = not has_them
    found.save(update_fields=["lacks_vectors"])
