"""Counting in Redis: a number for each window, which goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import structlog
from django.conf import settings
from redis import Redis, RedisError

from klerai.accounts.windows import Window

PATIENCE_SECONDS = 0.2
logger = structlog.get_logger(__name__)


def count(windows: Sequence[Window]) -> list[int] | None:
    """One request more in each of these, and how many that makes; None when Redis does not answer."""
    try:
        with _redis(settings.REDIS_URL).pipeline(transaction=False) as pipeline:
            for window in windows:
                name = f"klerai:requests:{window.subject.hex}:{int(window.began_at.timestamp())}"
                pipeline.incr(name)
                pipeline.expire(name, window.seconds)
            return [int(answer) for answer in pipeline.execute()[::2]]
    except RedisError as error:
        logger.warning("redis_does_not_count", problem=type(error).__name__)
        return None


@cache
def _redis(url: str) -> Redis:
    """The connections of this process."""
    return Redis.from_url(url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
