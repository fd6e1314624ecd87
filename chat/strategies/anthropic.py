"""Claude models, by the Anthropic SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

import anthropic
import httpx2

from chat.errors import FaultKind, ModelFault
from chat.strategies.anthropic_request import VENDOR, to_parameters
from chat.strategies.anthropic_turn import MAX_DETAIL_CHARACTERS, Turn, fault_of
from chat.strategies.base import ModelRequest, StrategyEvent
from chat.strategies.patience import Patience
from chat.strategies.sse import EventSplitter, EventTooLong

FULL_READ_BYTES = 16_384
GOODBYE_SECONDS = 0.1


class Anthropic:
    """Asks the Messages API and reads the raw stream, which costs a quarter of the SDK's typed events.

    It never asks twice: retrying is another layer's business.
    """

    name = VENDOR

    def __init__(self, *, api_key: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._api_key = api_key
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            timeout=anthropic.Timeout(None, connect=self._patience.connect_seconds),
            open_telemetry=False,
            http_client=anthropic.DefaultAioHttpClient(follow_redirects=False),
        )
        self._create = self._client.messages.with_streaming_response.create

    async def aclose(self) -> None:
        await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        turn = Turn(request.card.model, spoken_tool=request.spoken_tool)
        splitter = EventSplitter()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience.first_token_seconds
        response = await self._open(request, deadline)
        try:
            reads = response.http_response.aiter_bytes()
            while not turn.is_over:
                read = await _next(reads, deadline)
                if read is None:
                    break
                pieces = turn.read(_events(splitter, read))
                for piece in pieces:
                    yield piece
                if pieces and turn.is_speaking and len(read) < FULL_READ_BYTES:
                    await asyncio.sleep(self._patience.pause_seconds)
                if turn.has_begun:
                    deadline = loop.time() + self._patience.silence_seconds
            await _say_goodbye(reads)
        finally:
            await response.close()
        yield turn.complete()

    async def _open(self, request: ModelRequest, deadline: float) -> anthropic.AsyncAPIResponse[Any]:
        """The answer's beginning: its status is 200 and its body is still to be read."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._create(**to_parameters(request), stream=True).__aenter__()
        except anthropic.APIStatusError as error:
            raise self._refused(error) from error
        except (TimeoutError, anthropic.APITimeoutError) as error:
            raise _timeout() from error
        except (anthropic.APIConnectionError, httpx2.RequestError, OSError) as error:
            raise ModelFault(FaultKind.CONNECTION, detail=type(error.__cause__ or error).__name__) from error

    def _refused(self, error: anthropic.APIStatusError) -> ModelFault:
        """The vendor's own sentence, without our key should it repeat it."""
        sentence = (error.api_message or f"HTTP {error.status_code}").replace(self._api_key or "\0", "…")
        detail = f"HTTP {error.status_code}: {sentence}"[:MAX_DETAIL_CHARACTERS]
        return ModelFault(_kind_of(error), detail=detail, retry_after=_retry_after(error))


def _kind_of(error: anthropic.APIStatusError) -> FaultKind:
    by_type = fault_of(error.type)
    if by_type is not FaultKind.REJECTED:
        return by_type
    match error.status_code:
        case 429:
            return FaultKind.RATE_LIMITED
        case 529:
            return FaultKind.OVERLOADED
        case 408 | 409:
            return FaultKind.SERVER
        case status if status >= 500:
            return FaultKind.SERVER
    return FaultKind.REJECTED


def _retry_after(error: anthropic.APIStatusError) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _timeout() -> ModelFault:
    return ModelFault(FaultKind.TIMEOUT, detail="the vendor did not go on in time")


async def _next(reads: AsyncIterator[bytes], deadline: float) -> bytes | None:
    """The next read, or None at the body's end. A body that breaks has ended; the turn knows whether it was whole."""
    try:
        async with asyncio.timeout_at(deadline):
            with suppress(httpx2.RequestError, OSError):
                return await anext(reads, None)
    except TimeoutError as error:
        raise _timeout() from error
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
