"""Queued and periodic work on knowledge."""

from __future__ import annotations

from uuid import UUID

import structlog
from procrastinate.contrib.django import app

from retrieval.embedders.caching import forget_unused
from retrieval.reembedding import remove_old_windows
from retrieval.vector_index import ensure_indexes

logger = structlog.get_logger(__name__)


@app.periodic(cron="23 3 * * *", periodic_id="forget-unused-vectors")
@app.task(queueing_lock="forget-unused-vectors")
def forget_unused_vectors(timestamp: int) -> None:
    """Once a night, so that the cache holds what is still read."""
    logger.info("vectors_forgotten", count=forget_unused())


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
