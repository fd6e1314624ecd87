"""Queued and periodic work on knowledge."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from retrieval.embedders.caching import forget_unused

logger = structlog.get_logger(__name__)


@app.periodic(cron="23 3 * * *", periodic_id="forget-unused-vectors")
@app.task(queueing_lock="forget-unused-vectors")
def forget_unused_vectors(timestamp: int) -> None:
    """Once a night, so that the cache holds what is still read."""
    logger.info("vectors_forgotten", count=forget_unused())
