"""The body of a vendor's answer, read with patience until its turn is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import Protocol

import httpx2

from chat.errors import FaultKind, ModelFault
from chat.strategies.base import StrategyEvent, TurnComplete
from chat.strategies.patience import Patience
from chat.strategies.sse import EventSplitter, EventTooLong

FULL_READ_BYTES = 16_384
GOODBYE_SECONDS = 0.1


class Turn(Protocol):
    """A turn that is being written. `has_begun` once something of the answer itself has come, `is_speaking` while
    words are written that are shown as they grow."""

    @property
    def is_over(self) -> bool: ...

    @property
    def has_begun(self) -> bool: ...

    @property
    def is_speaking(self) -> bool: ...

    def read(self, events: list[bytes]) -> list[StrategyEvent]:
        """What these events add."""

    def complete(self) -> TurnComplete:
        """The whole turn. Raises ModelFault and ModelRefused when there is none."""


class Response(Protocol):
    """An answer, of any SDK, whose body is still to be read."""

    @property
    def http_response(self) -> httpx2.Response: ...

    async def close(self) -> None: ...


async def read_turn(
    response: Response, turn: Turn, *, deadline: float, patience: Patience
) -> AsyncGenerator[StrategyEvent]:
    """Yield what comes and last the whole turn, and close the answer; `deadline` is when it has to have begun.

    Comments that only keep the connection open are no sign of life. Raises ModelFault and ModelRefused.
    """
    splitter = EventSplitter()
    loop = asyncio.get_running_loop()
    try:
        reads = response.http_response.aiter_bytes()
        while not turn.is_over:
            read = await _next(reads, deadline)
            if read is None:
                break
            events = _events(splitter, read)
            pieces = turn.read(events)
            for piece in pieces:
                yield piece
            if pieces and turn.is_speaking and len(read) < FULL_READ_BYTES:
                await asyncio.sleep(patience.pause_seconds)
            if events and turn.has_begun:
                deadline = loop.time() + patience.silence_seconds
        await _say_goodbye(reads)
    finally:
        await response.close()
    yield turn.complete()


def kind_of_status(status: int) -> FaultKind:
    """What a status says of a refused request, where the vendor's words say no more."""
    match status:
        case 429:
            return FaultKind.RATE_LIMITED
        case 503 | 529:
            return FaultKind.OVERLOADED
        case 408 | 409:
            return FaultKind.SERVER
        case _ if status >= 500:
            return FaultKind.SERVER
    return FaultKind.REJECTED


def timed_out() -> ModelFault:
    return ModelFault(FaultKind.TIMEOUT, detail="the vendor did not go on in time")


def wished_wait(headers: Mapping[str, str]) -> float | None:
    """How many seconds the vendor asks us to wait, where it says so."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


async def _next(reads: AsyncIterator[bytes], deadline: float) -> bytes | None:
    """The next read, or None at the body's end. A body that breaks has ended; the turn knows whether it was whole."""
    try:
        async with asyncio.timeout_at(deadline):
            with suppress(httpx2.RequestError, OSError):
                return await anext(reads, None)
    except TimeoutError as error:
        raise timed_out() from error
    return None


def _events(splitter: EventSplitter, read: bytes) -> list[bytes]:
    try:
        return splitter.feed(read)
    except EventTooLong as error:
        raise ModelFault(FaultKind.MALFORMED, detail=str(error)) from error


async def _say_goodbye(reads: AsyncIterator[bytes]) -> None:
    """Reads to the end of the body, which is due at once, so that the connection can serve the next turn."""
    with suppress(TimeoutError, httpx2.RequestError, OSError):
        async with asyncio.timeout(GOODBYE_SECONDS):
            await anext(reads, None)
