"""Where requests are counted, in one round trip: Redis where there is one, and PostgreSQL where it does not answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from redis import Redis, RedisError

PATIENCE_SECONDS = 0.2
logger = structlog.get_logger(__name__)

# A process whose clock is a moment behind counts into the window that others have begun.
_COUNT = """
    INSERT INTO accounts_requestcount AS known (subject, person_id, began_at, requests)
    SELECT subject, %s, began_at, 1 FROM unnest(%s::uuid[], %s::timestamptz[]) AS asked (subject, began_at)
    ON CONFLICT (subject) DO UPDATE SET
        requests = CASE WHEN known.began_at >= excluded.began_at THEN known.requests + 1 ELSE 1 END,
        began_at = greatest(known.began_at, excluded.began_at)
    RETURNING subject, requests
"""


@dataclass(frozen=True, slots=True)
class Window:
    """The requests of one subject, from a moment on, for so many seconds."""

    subject: UUID
    began_at: datetime
    seconds: int


def count(windows: Sequence[Window], person_id: UUID) -> list[int]:
    """One request more in each of these; how many that makes."""
    if settings.REDIS_URL:
        try:
            return _count_in_redis(windows)
        except RedisError as error:
            logger.warning("redis_does_not_count", problem=type(error).__name__)
    return _count_in_database(windows, person_id)


def _count_in_redis(windows: Sequence[Window]) -> list[int]:
    with _redis(settings.REDIS_URL).pipeline(transaction=False) as pipeline:
        for window in windows:
            name = f"klerai:requests:{window.subject.hex}:{int(window.began_at.timestamp())}"
            pipeline.incr(name)
            pipeline.expire(name, window.seconds)
        return [int(answer) for answer in pipeline.execute()[::2]]


def _count_in_database(windows: Sequence[Window], person_id: UUID) -> list[int]:
    subjects, beginnings = [each.subject for each in windows], [each.began_at for each in windows]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [person_id, subjects, beginnings])
        requests = dict(cursor.fetchall())
    return [requests[subject] for subject in subjects]


@cache
def _redis(url: str) -> Redis:
    """The connections of this process."""
    return Redis.from_url(url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
