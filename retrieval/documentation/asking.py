"""Asking Context7: again where that helps, not at all while it wants to be left alone, and a copy where it fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC
from hashlib import sha256
from typing import TypeVar

from django.conf import settings
from django.core.cache import cache

from klerai.database import in_database
from retrieval.documentation.client import TIMEOUT_SECONDS
from retrieval.documentation.clock import Clock
from retrieval.documentation.copies import Copy
from retrieval.documentation.faults import Fault, Kind

T = TypeVar("T")
COVERED_SECONDS = 5.0
TROUBLED_SECONDS = 30
_ATTEMPTS = 3
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 3.0
_KEEP_FOR_LATER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Current:
    """What stands now, and the sentence that says why it is an older copy than it should be, if it is one."""

    copy: Copy
    note: str = ""
    is_from_copy: bool = False


async def current(kept: Copy | None, fetch: Callable[[float], Awaitable[Copy]], clock: Clock, *, what: str) -> Current:
    """The copy of `what` while it is fresh, else what `fetch` gives within the seconds it is called with.

    Where that fails in a way that may pass, the old copy stands in, and for half a minute nobody waits for the same
    failure again. Raises Fault.
    """
    if kept is not None and kept.is_fresh:
        return Current(kept, is_from_copy=True)
    try:
        await _stop_while_paused(is_covered=kept is not None)
        return Current(await _fetched(fetch, clock, is_covered=kept is not None))
    except Fault as fault:
        if kept is None or not fault.is_covered:
            raise
        when = kept.fetched_at.astimezone(UTC)
        note = f"{fault} Until then {what} is from a copy of {when.day} {when:%B %Y, %H:%M} UTC."
        return Current(kept, note, is_from_copy=True)


async def _fetched(fetch: Callable[[float], Awaitable[Copy]], clock: Clock, *, is_covered: bool) -> Copy:
    attempt = 1
    while True:
        seconds = min(TIMEOUT_SECONDS, COVERED_SECONDS if is_covered else TIMEOUT_SECONDS, clock.left)
        try:
            return await fetch(max(seconds, 0.1))
        except Fault as fault:
            wait = _wait_seconds(fault, attempt)
            if is_covered or wait is None or wait > clock.left - _KEEP_FOR_LATER_SECONDS:
                await _pause_after(fault)
                raise
        await asyncio.sleep(wait)
        attempt += 1


def _wait_seconds(fault: Fault, attempt: int) -> float | None:
    """How long to wait before asking again; None when that would not help."""
    match fault.kind:
        case Kind.TROUBLE if attempt < _ATTEMPTS:
            return min(_FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), _LONGEST_WAIT_SECONDS) * random.uniform(0.5, 1)
        case Kind.LIMIT if attempt == 1 and fault.wait_seconds <= _LONGEST_WAIT_SECONDS:
            return fault.wait_seconds
    return None


async def _pause_after(fault: Fault) -> None:
    """Other questions learn of it, in all processes."""
    match fault.kind:
        case Kind.LIMIT:
            await in_database(cache.set, _key("limit"), str(fault), max(1, round(fault.wait_seconds)))
        case Kind.TROUBLE | Kind.SLOW:
            await in_database(cache.set, _key("trouble"), str(fault), TROUBLED_SECONDS)


async def _stop_while_paused(*, is_covered: bool) -> None:
    """After a limit nobody asks; after trouble only those who have no copy."""
    said = await in_database(cache.get_many, [_key("limit"), _key("trouble")])
    if sentence := said.get(_key("limit")):
        raise Fault(Kind.LIMIT, sentence)
    if is_covered and (sentence := said.get(_key("trouble"))):
        raise Fault(Kind.TROUBLE, sentence)


def _key(what: str) -> str:
    whom = sha256(f"{settings.CONTEXT7.base_url}\n{settings.CONTEXT7.key}".encode()).hexdigest()
    return f"context7-{what}-{whom[:16]}"
