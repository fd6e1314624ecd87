"""Claude models, by the Anthropic SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anthropic
import httpx2

from chat.errors import FaultKind, ModelFault
from chat.strategies.anthropic_request import VENDOR, to_parameters
from chat.strategies.anthropic_turn import MAX_DETAIL_CHARACTERS, Turn, fault_of
from chat.strategies.base import ModelRequest, StrategyEvent
from chat.strategies.patience import Patience
from chat.strategies.reading import kind_of_status, read_turn, timed_out, wished_wait


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
        deadline = asyncio.get_running_loop().time() + self._patience.first_token_seconds
        response = await self._open(request, deadline)
        async with aclosing(read_turn(response, turn, deadline=deadline, patience=self._patience)) as events:
            async for event in events:
                yield event

    async def _open(self, request: ModelRequest, deadline: float) -> anthropic.AsyncAPIResponse[Any]:
        """The answer's beginning: its status is 200 and its body is still to be read."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._create(**to_parameters(request), stream=True).__aenter__()
        except anthropic.APIStatusError as error:
            raise self._refused(error) from error
        except (TimeoutError, anthropic.APITimeoutError) as error:
            raise timed_out() from error
        except (anthropic.APIConnectionError, httpx2.RequestError, OSError) as error:
            raise ModelFault(FaultKind.CONNECTION, detail=type(error.__cause__ or error).__name__) from error

    def _refused(self, error: anthropic.APIStatusError) -> ModelFault:
        """The vendor's own sentence, without our key should it repeat it."""
        sentence = (error.api_message or f"HTTP {error.status_code}").replace(self._api_key or "\0", "…")
        detail = f"HTTP {error.status_code}: {sentence}"[:MAX_DETAIL_CHARACTERS]
        return ModelFault(_kind_of(error), detail=detail, retry_after=wished_wait(error.response.headers))


def _kind_of(error: anthropic.APIStatusError) -> FaultKind:
    by_type = fault_of(error.type)
    return kind_of_status(error.status_code) if by_type is FaultKind.REJECTED else by_type
