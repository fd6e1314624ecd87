"""How many requests a program may send: what is counted, by which limit, and what it is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError
from django.utils.module_loading import import_string

from klerai.accounts.errors import TooManyRequests, Unauthenticated
from klerai.accounts.logins import KeyLogin
from klerai.accounts.request_counts import count
from klerai.accounts.windows import Window

KEY, PLAN = "key", "plan"


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """`most` requests in so many seconds: of one key for the limit `key`, of all keys of a person for `plan`."""

    name: str
    most: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Counted:
    """A limit with the request that came just now."""

    limit: RequestLimit
    requests: int
    resets_at: datetime

    @property
    def left(self) -> int:
        return max(0, self.limit.most - self.requests)

    @property
    def is_passed(self) -> bool:
        return self.requests > self.limit.most

    def seconds_left(self, now: datetime) -> int:
        return max(1, ceil((self.resets_at - now).total_seconds()))


def count_request(login: KeyLogin, *, now: datetime) -> list[Counted]:
    """Count it by every limit there is; none are named for a plan without limits.

    Raises Unauthenticated when the person has left since the key was read.
    """
    limits: tuple[RequestLimit, ...] = import_string(settings.REQUEST_LIMITS)(login.person)
    windows = [Window(_subject(limit, login), _beginning(limit, now), limit.seconds) for limit in limits]
    try:
        requests = count(windows, login.person.pk) if windows else []
    except IntegrityError as error:
        raise Unauthenticated from error
    return [
        Counted(limit, number, window.began_at + timedelta(seconds=limit.seconds))
        for limit, window, number in zip(limits, windows, requests, strict=True)
    ]


def refuse_too_many(counted: list[Counted], *, now: datetime) -> None:
    """Raises TooManyRequests for the limit that lasts longest of those that are passed."""
    passed = max((each for each in counted if each.is_passed), key=lambda each: each.resets_at, default=None)
    if passed is not None:
        raise TooManyRequests(
            limit=passed.limit.name,
            most=passed.limit.most,
            window_seconds=passed.limit.seconds,
            resets_at=passed.resets_at,
            wait_seconds=passed.seconds_left(now),
        )


def headers_of(counted: list[Counted], *, now: datetime) -> dict[str, str]:
    """The IETF's fields for every limit, and the three that are in wide use for the limit that is nearest."""
    if not counted:
        return {}
    nearest = min(counted, key=lambda each: each.left)
    policies = (f'"{each.limit.name}";q={each.limit.most};w={each.limit.seconds}' for each in counted)
    states = (f'"{each.limit.name}";r={each.left};t={each.seconds_left(now)}' for each in counted)
    return {
        "RateLimit-Policy": ", ".join(policies),
        "RateLimit": ", ".join(states),
        "RateLimit-Limit": str(nearest.limit.most),
        "RateLimit-Remaining": str(nearest.left),
        "RateLimit-Reset": str(nearest.seconds_left(now)),
    }


def _subject(limit: RequestLimit, login: KeyLogin) -> UUID:
    return login.key_id if limit.name == KEY else login.person.pk


def _beginning(limit: RequestLimit, now: datetime) -> datetime:
    """Windows lie on the clock, so that all processes mean the same one."""
    return datetime.fromtimestamp(now.timestamp() // limit.seconds * limit.seconds, tz=now.tzinfo)
