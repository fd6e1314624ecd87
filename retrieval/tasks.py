"""Queued and periodic work on knowledge."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import structlog
from django.utils import timezone
from procrastinate import JobContext, RetryStrategy
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from klerai.database import in_database
from retrieval.documentation.copies import forget_old
from retrieval.embedders.caching import forget_unused
from retrieval.ingestion.guide import pages, store_guide
from retrieval.ingestion.pipeline import UNFINISHED, embed_later, fail, process
from retrieval.ingestion.queueing import QUEUE, queue
from retrieval.models import Document
from retrieval.reembedding import remove_old_windows
from retrieval.vector_index import ensure_indexes

MOST_ATTEMPTS = 4
RETRY = RetryStrategy(max_attempts=MOST_ATTEMPTS, exponential_wait=5)
FORGOTTEN_AFTER = timedelta(minutes=15)
GAVE_UP = "Something went wrong on our side, several times. Try again; if it stays so, tell the people who run this."
_AT_ONCE = 50
logger = structlog.get_logger(__name__)


@app.task(name="process_document", queue=QUEUE, retry=RETRY, pass_context=True)
async def process_document(context: JobContext, document_id: str) -> None:
    """At least once. A document over which its worker died several times fails."""
    if context.job.attempts >= MOST_ATTEMPTS:
        await in_database(give_up, UUID(document_id))
        return
    await process(UUID(document_id))


def give_up(document_id: UUID) -> None:
    document = Document.objects.defer("text").filter(pk=document_id).first()
    if document is not None:
        fail(document, GAVE_UP)


@app.periodic(cron="*/5 * * * *", periodic_id="embed-later")
@app.task(name="embed_what_lacks_vectors", queue=QUEUE, queueing_lock="embed-later", pass_context=False)
async def embed_what_lacks_vectors(timestamp: int) -> None:
    """Every five minutes; a knowledge base whose embedder is still away is left until the next time."""
    lacking = Document.objects.filter(lacks_vectors=True, status=Document.Status.READY)
    for knowledge_base in await in_database(
        list, lacking.order_by().values_list("knowledge_base", flat=True).distinct()
    ):
        waiting = lacking.filter(knowledge_base=knowledge_base).order_by("updated_at").values_list("pk", flat=True)
        for document_id in await in_database(list, waiting[:_AT_ONCE]):
            if not await embed_later(document_id):
                break


@app.periodic(cron="*/10 * * * *", periodic_id="queue-forgotten")
@app.task(name="queue_forgotten", queueing_lock="queue-forgotten", pass_context=False)
def queue_forgotten(timestamp: int) -> None:
    """Every ten minutes: documents that wait without a job, such as those of an `ingest` that was killed."""
    waiting = Document.objects.filter(status__in=UNFINISHED, updated_at__lt=timezone.now() - FORGOTTEN_AFTER)
    for document_id in waiting.order_by("updated_at").values_list("pk", flat=True)[:_AT_ONCE]:
        jobs = ProcrastinateJob.objects.filter(task_name="process_document", status__in=["todo", "doing"])
        if not jobs.filter(args__document_id=str(document_id)).exists():
            queue(document_id)


@app.task(name="load_user_guide", queue=QUEUE)
async def load_user_guide() -> None:
    """Asked for by `up` when the guide has changed and its vectors come from elsewhere."""
    await store_guide(pages())


@app.periodic(cron="23 3 * * *", periodic_id="forget-unused-vectors")
@app.task(queueing_lock="forget-unused-vectors")
def forget_unused_vectors(timestamp: int) -> None:
    """Once a night, so that the cache holds what is still read."""
    logger.info("vectors_forgotten", count=forget_unused())


@app.periodic(cron="41 3 * * *", periodic_id="forget-old-documentation")
@app.task(queueing_lock="forget-old-documentation")
def forget_old_documentation(timestamp: int) -> None:
    """Once a night: copies that are too old to stand in for anything."""
    logger.info("documentation_forgotten", count=forget_old())


@app.task(name="remove_old_vectors")
def remove_old_vectors(knowledge_base_id: str) -> None:
    """After a change of embedders, a minute late: a search that began before it may still be using them."""
    removed = remove_old_windows(UUID(knowledge_base_id))
    logger.info("old_vectors_removed", knowledge_base=knowledge_base_id, count=removed)


@app.periodic(cron="*/10 * * * *", periodic_id="index-windows")
@app.task(queueing_lock="index-windows")
def index_windows(timestamp: int) -> None:
    """Soon after an embedder has so many windows that comparing them all takes long."""
    ensure_indexes()
