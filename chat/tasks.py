"""Queued and periodic work of the chat."""

from __future__ import annotations

from procrastinate.contrib.django import app

from chat.compaction import compact_logs


@app.periodic(cron="17 * * * *", periodic_id="compact-logs")
@app.task(queueing_lock="compact-logs", pass_context=False)
def compact_old_logs(timestamp: int) -> None:
    """Once an hour, until nothing old is left."""
    while compact_logs():
        pass
