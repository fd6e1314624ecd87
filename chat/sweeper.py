"""Ends runs whose process is gone: interrupted, nothing charged, what was said is kept."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from django.utils import timezone

from chat.endings import INTERRUPTED, bill_of_lost, end_run
from chat.errors import LeaseLost
from chat.models import Run
from klerai.database import in_database

EVERY_SECONDS = 5.0
AT_ONCE = 100
logger = structlog.get_logger(__name__)


def sweep() -> int:
    """End every run whose lease has lapsed; how many there were. Any number of sweepers may run at once."""
    lapsed = Run.objects.filter(state__in=Run.LIVE, lease_until__lt=timezone.now()).select_related("person")
    ended = 0
    for run in lapsed.order_by("lease_until")[:AT_ONCE]:
        with contextlib.suppress(LeaseLost):
            end_run(run, INTERRUPTED, bill_of_lost(run), is_lost=True)
            ended += 1
            logger.warning("run_interrupted", run_id=str(run.run_id))
    return ended


async def sweep_forever() -> None:
    """Sweep at once and then every few seconds, until cancelled; a database that is away is tried again."""
    while True:
        try:
            await in_database(sweep)
        except Exception:
            logger.exception("sweep_failed")
        await asyncio.sleep(EVERY_SECONDS)
