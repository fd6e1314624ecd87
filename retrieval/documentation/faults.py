"""What goes wrong between us and Context7, and what may be done about it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto

from django.conf import settings

UNPAID_SECONDS = 3600.0
_WAIT_UNSAID_SECONDS = 30.0
_LONGEST_WAIT_SECONDS = 24 * 3600.0


class Kind(Enum):
    """What a fault says about asking again."""

    TROUBLE = auto()  # a moment later it may work
    SLOW = auto()  # no answer in time
    LIMIT = auto()  # only after a while, which the service may name
    PREPARING = auto()  # the library is not ready yet
    GONE = auto()  # there is no such library
    MOVED = auto()  # the library has another id now
    REFUSED = auto()  # never, as things are


_COVERED = {Kind.TROUBLE, Kind.SLOW, Kind.LIMIT, Kind.PREPARING}
_BY_CHANCE = {Kind.TROUBLE, Kind.SLOW}


class Fault(Exception):
    """One request that gave nothing; `str(fault)` is a sentence for people.

    `wait_seconds` comes with LIMIT, `moved_to`, a library's id, with MOVED.
    """

    def __init__(self, kind: Kind, sentence: str, *, wait_seconds: float = 0, moved_to: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind
        self.wait_seconds = wait_seconds
        self.moved_to = moved_to

    @property
    def is_covered(self) -> bool:
        """Whether an older copy may stand in."""
        return self.kind in _COVERED

    @property
    def is_settled(self) -> bool:
        """Whether another request at the same moment would be told the same."""
        return self.kind not in _BY_CHANCE


def fault_of_status(status: int, headers: Mapping[str, str]) -> Fault:
    """The fault for an HTTP status that brings no documentation. What the service says itself is not repeated."""
    match status:
        case 202:
            return Fault(Kind.PREPARING, "Context7 is still preparing this library. Try again in a few minutes.")
        case 401 | 403:
            sentence = "Context7 does not accept us for this library. Put a valid CONTEXT7_API_KEY in the settings."
            return Fault(Kind.REFUSED, sentence)
        case 402:
            sentence = "The spending limit at Context7 is reached. Raise it there, or wait for its next period."
            return Fault(Kind.LIMIT, sentence, wait_seconds=UNPAID_SECONDS)
        case 404:
            return Fault(Kind.GONE, "Context7 does not have this library any more.")
        case 429:
            wait = wait_of(headers)
            more = "" if settings.CONTEXT7.key else " With a CONTEXT7_API_KEY it takes more of them."
            sentence = f"Context7 wants fewer requests: try again in {_spoken(wait)}.{more}"
            return Fault(Kind.LIMIT, sentence, wait_seconds=wait)
        case _ if status >= 500:
            return Fault(Kind.TROUBLE, f"Context7 has a fault (HTTP {status}). Try again in a minute.")
        case _ if 300 <= status < 400:
            return Fault(Kind.REFUSED, "Context7 sends us elsewhere, which we do not follow. Check CONTEXT7_BASE_URL.")
    return Fault(Kind.REFUSED, f"Context7 refused the question (HTTP {status}).")


def too_slow(seconds: float) -> Fault:
    return Fault(Kind.SLOW, f"Context7 did not answer within {max(1, round(seconds))} seconds. Try again in a minute.")


def unreachable() -> Fault:
    sentence = "Context7 cannot be reached. Check CONTEXT7_BASE_URL and the network, then try again."
    return Fault(Kind.TROUBLE, sentence)


def unreadable(what: str = "gave an answer that cannot be read") -> Fault:
    return Fault(Kind.TROUBLE, f"Context7 {what}. Try again; if it stays so, check CONTEXT7_BASE_URL.")


def wait_of(headers: Mapping[str, str]) -> float:
    """The seconds a 429 asks for: Retry-After as seconds or date, else RateLimit-Reset, a Unix time."""
    said = headers.get("retry-after", "").strip()
    wait = _number(said)
    if wait is None and said:
        try:
            when = parsedate_to_datetime(said)
        except ValueError:
            when = None
        wait = (when - datetime.now(UTC)).total_seconds() if when is not None and when.tzinfo else None
    if wait is None and (reset := _number(headers.get("ratelimit-reset", ""))) is not None:
        wait = reset - time.time()
    return min(max(_WAIT_UNSAID_SECONDS if wait is None else wait, 0), _LONGEST_WAIT_SECONDS)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} seconds"
    return f"{math.ceil(seconds / 60)} minutes"
