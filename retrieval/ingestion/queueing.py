"""The queue of documents that wait to be read."""

from __future__ import annotations

from uuid import UUID

from procrastinate.contrib.django import app

QUEUE = "ingestion"


def queue(document_id: UUID) -> None:
    """Have a document processed once what the caller does is committed; the same document never twice at a time."""
    job = app.configure_task("process_document", queue=QUEUE, lock=f"document:{document_id}")
    job.defer(document_id=str(document_id))
