"""Where requests are counted, in one round trip: Redis where there is one, and PostgreSQL where it does not answer."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db import connection

from klerai.accounts.windows import Window

# A process whose clock is a moment behind counts into the window that others have begun.
_COUNT = """
    INSERT INTO accounts_requestcount AS known (subject, person_id, began_at, requests)
    SELECT subject, %s, began_at, 1 FROM unnest(%s::uuid[], %s::timestamptz[]) AS asked (subject, began_at)
    ON CONFLICT (subject) DO UPDATE SET
        requests = CASE WHEN known.began_at >= excluded.began_at THEN known.requests + 1 ELSE 1 END,
        began_at = greatest(known.began_at, excluded.began_at)
    RETURNING subject, requests
"""


def count(windows: Sequence[Window], person_id: UUID) -> list[int]:
    """One request more in each of these; how many that makes."""
    counted = _count_in_redis(windows) if settings.REDIS_URL else None
    return _count_in_database(windows, person_id) if counted is None else counted


def _count_in_redis(windows: Sequence[Window]) -> list[int] | None:
    from klerai.accounts import redis_counts  # half a second of import: only where it is used

    return redis_counts.count(windows)


def _count_in_database(windows: Sequence[Window], person_id: UUID) -> list[int]:
    subjects, beginnings = [each.subject for each in windows], [each.began_at for each in windows]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [person_id, subjects, beginnings])
        requests = dict(cursor.fetchall())
    return [requests[subject] for subject in subjects]
