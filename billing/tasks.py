"""Periodic work of the books."""

from __future__ import annotations

import structlog
from procrastinate.contrib.django import app

from billing.audit import reconcile

logger = structlog.get_logger(__name__)


@app.periodic(cron="7 * * * *", periodic_id="reconcile-ledger")
@app.task(queueing_lock="reconcile-ledger")
def reconcile_ledger(timestamp: int) -> None:
    """Once an hour: close the accounts whose balance is not what their entries say, and open those that are again."""
    for violation in reconcile():
        logger.error("ledger_violation", rule=violation.id, subject=violation.subject, what=violation.what)
