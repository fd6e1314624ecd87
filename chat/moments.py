"""When a question is asked, as the person's own clock has it."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo


def moment(zone: ZoneInfo, *, now: datetime | None = None) -> str:
    """Weekday, date, time and zone in words: it stands with the question, never in what a vendor caches."""
    here = (now or datetime.now(zone)).astimezone(zone)
    return f"Asked on {here:%A}, {here.day} {here:%B %Y}, at {here:%H:%M}, {zone.key}"
