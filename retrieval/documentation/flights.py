"""What is being fetched right now, so that whoever wants the same waits for it instead of asking too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from django.apps import apps

from retrieval.documentation.clock import Clock
from retrieval.documentation.faults import Fault

T = TypeVar("T")
Place = tuple[asyncio.AbstractEventLoop, str]


@dataclass(slots=True)
class _Flight:
    work: asyncio.Task[Any]
    waiting: int = 0


class Flights:
    """Work under way, by a key that says what it is for; each event loop has its own."""

    def __init__(self) -> None:
        self._under_way: dict[Place, _Flight] = {}

    async def share(self, key: str, work: Callable[[], Coroutine[Any, Any, T]], *, clock: Clock) -> T:
        """What `work` gives, or what the same work of somebody before us gives, who is waited for while `clock` runs.

        Where that one fails in a way that need not be ours, we try ourselves. It goes on when whoever began it leaves,
        and is given up when nobody waits for it any more. Raises what `work` raises, and TimeoutError.
        """
        place = (asyncio.get_running_loop(), key)
        while (flight := self._under_way.get(place)) is not None:
            await self._landed(place, flight, seconds=clock.left)
            if not flight.work.done():
                raise TimeoutError
            if not _is_ours_to_try(flight.work):
                theirs: T = flight.work.result()
                return theirs
        flight = self._under_way[place] = _Flight(asyncio.create_task(work()))
        flight.work.add_done_callback(lambda _: self._forget(place, flight))
        await self._landed(place, flight, seconds=None)
        ours: T = flight.work.result()
        return ours

    async def _landed(self, place: Place, flight: _Flight, *, seconds: float | None) -> None:
        flight.waiting += 1
        try:
            await asyncio.wait({flight.work}, timeout=seconds)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.work.done():
                self._forget(place, flight)
                flight.work.cancel()

    def _forget(self, place: Place, flight: _Flight) -> None:
        if self._under_way.get(place) is flight:
            del self._under_way[place]
        if flight.work.done() and not flight.work.cancelled():
            flight.work.exception()  # it may be that nobody waits for it


def flights() -> Flights:
    """Those of this process."""
    found: Flights = apps.get_app_config("retrieval").flights  # type: ignore[attr-defined]  # made when apps are ready
    return found


def _is_ours_to_try(work: asyncio.Task[Any]) -> bool:
    """Whether it failed for want of time or luck; what Context7 says to one it would say to the other."""
    if work.cancelled():
        return True
    error = work.exception()
    return error is not None and not (isinstance(error, Fault) and error.is_settled)
