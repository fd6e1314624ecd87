"""Makes the logs of old runs short: how it began, the words, how it ended."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from chat.endings import answer_text
from chat.events import TERMINAL_TYPES, ContentChunk, Logged, RunStarted, payload
from chat.models import Run, RunEvent

KEPT_WHOLE = timedelta(days=1)
SHORT = 3
AT_ONCE = 500


def compact_logs(*, now: datetime | None = None) -> int:
    """Shorten the logs of runs that ended over a day ago; how many there were. Numbers stay 1..n without gaps."""
    before = (now or timezone.now()) - KEPT_WHOLE
    old = Run.objects.filter(ended_at__lt=before, last_seq__gt=SHORT).order_by("ended_at")[:AT_ONCE]
    for run in old:
        _compact(run)
    return len(old)


@transaction.atomic
def _compact(run: Run) -> None:
    events = [Logged(*row) for row in run.events.select_for_update().order_by("seq").values_list("seq", "type", "data")]
    kept = [(event.type, event.data) for event in events if event.type == RunStarted.type]
    text = answer_text(events)
    if text:
        turn = max(event.data["turn"] for event in events if event.type == ContentChunk.type)
        kept.append((ContentChunk.type, payload(ContentChunk(text, turn))))
    kept += [(event.type, event.data) for event in events if event.type in TERMINAL_TYPES]
    run.events.all().delete()
    RunEvent.objects.bulk_create(
        RunEvent(run_id=run.pk, seq=seq, type=kind, data=data) for seq, (kind, data) in enumerate(kept, start=1)
    )
    Run.objects.filter(pk=run.pk).update(last_seq=len(kept))
