"""Queued and periodic work of the chat."""

from __future__ import annotations

from uuid import UUID

import structlog
from procrastinate import JobContext, RetryStrategy
from procrastinate.contrib.django import app

from chat.compaction import compact_logs
from chat.export import making
from klerai.accounts.exports import forget_expired

MOST_ATTEMPTS = 4
RETRY = RetryStrategy(max_attempts=MOST_ATTEMPTS, exponential_wait=5)
logger = structlog.get_logger(__name__)


@app.periodic(cron="17 * * * *", periodic_id="compact-logs")
@app.task(queueing_lock="compact-logs", pass_context=False)
def compact_old_logs(timestamp: int) -> None:
    """Once an hour, until nothing old is left."""
    while compact_logs():
        pass


@app.task(name="make_export", queue="exports", retry=RETRY, pass_context=True)
def make_export(context: JobContext, export_id: str) -> None:
    """At least once. An export over which its worker died several times fails."""
    if context.job.attempts >= MOST_ATTEMPTS:
        making.give_up(UUID(export_id))
    else:
        making.make_export(UUID(export_id))


@app.periodic(cron="27 * * * *", periodic_id="forget-expired-exports")
@app.task(queueing_lock="forget-expired-exports", pass_context=False)
def forget_expired_exports(timestamp: int) -> None:
    """Once an hour; from the minute an export expires on nobody can download it anyway."""
    logger.info("exports_forgotten", count=forget_expired())
