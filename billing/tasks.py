"""Queued and periodic work of the books."""

from __future__ import annotations

import structlog
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from billing import inbox, reconciliation
from billing.audit import reconcile

# 4, 16, 64 … seconds: Stripe may be away for about six hours; after that the hourly look goes on trying.
RETRY = RetryStrategy(max_attempts=8, exponential_wait=4)
logger = structlog.get_logger(__name__)


@app.task(name="apply_stripe_event", queue=inbox.QUEUE, retry=RETRY)
def apply_stripe_event(event_id: str) -> None:
    """At least once: the job names the announcement, and that names what to ask Stripe for."""
    inbox.apply(event_id)


@app.periodic(cron="7 * * * *", periodic_id="reconcile-ledger")
@app.task(queueing_lock="reconcile-ledger")
def reconcile_ledger(timestamp: int) -> None:
    """Once an hour: close the accounts whose balance is not what their entries say, and open those that are again."""
    for violation in reconcile():
        logger.error("ledger_violation", rule=violation.id, subject=violation.subject, what=violation.what)


@app.periodic(cron="37 * * * *", periodic_id="reconcile-stripe")
@app.task(name="reconcile_stripe", queue=inbox.QUEUE, queueing_lock="reconcile-stripe", pass_context=False)
def reconcile_stripe(timestamp: int) -> None:
    """Once an hour: whatever Stripe knows and we do not."""
    reconciliation.reconcile()
