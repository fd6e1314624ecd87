"""Models behind OpenAI's chat completions, whoever serves them, by the OpenAI SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx2
import openai
import orjson

from chat.errors import FaultKind, ModelFault, ModelRefused
from chat.strategies.base import ModelRequest, StrategyEvent
from chat.strategies.dialects import Dialect
from chat.strategies.openai_compatible_faults import MAX_DETAIL_CHARACTERS, error_in, fault_of
from chat.strategies.openai_compatible_request import Json, to_parameters
from chat.strategies.openai_compatible_turn import Turn
from chat.strategies.patience import Patience
from chat.strategies.reading import read_turn, timed_out, wished_wait


class OpenAICompatible:
    """Asks in one vendor's dialect and reads the raw stream, which costs a fraction of the SDK's typed chunks.

    It never asks twice: retrying is another layer's business.
    """

    def __init__(self, dialect: Dialect, *, api_key: str, base_url: str, patience: Patience | None = None) -> None:
        self._dialect = dialect
        self._patience = patience or Patience()
        self._api_key = api_key
        self._client = openai.AsyncOpenAI(
            api_key=api_key or "not-needed",
            base_url=base_url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=self._patience.connect_seconds),
            http_client=openai.DefaultAioHttpClient(follow_redirects=False),
        )
        # The SDK takes these from the environment; they are for OpenAI and no other vendor's business.
        self._client.organization = self._client.project = None
        self._create = self._client.chat.completions.with_streaming_response.create

    @property
    def name(self) -> str:
        return self._dialect.name

    async def aclose(self) -> None:
        await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        parameters = to_parameters(request, self._dialect)
        turn = Turn(
            request.card.model,
            self._dialect,
            prompt_characters=lambda: len(orjson.dumps([parameters["messages"], parameters.get("tools")])),
            spoken_tool=request.spoken_tool,
        )
        deadline = asyncio.get_running_loop().time() + self._patience.first_token_seconds
        response = await self._open(parameters, deadline)
        async with aclosing(read_turn(response, turn, deadline=deadline, patience=self._patience)) as events:
            async for event in events:
                yield event

    async def _open(self, parameters: Json, deadline: float) -> openai.AsyncAPIResponse[Any]:
        """The answer's beginning: its status is 200 and its body is still to be read."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._create(**parameters, stream=True).__aenter__()
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except TimeoutError as error:
            raise timed_out() from error
        except (openai.APIConnectionError, httpx2.RequestError, OSError) as error:
            raise _lost(error) from error

    def _refused(self, error: openai.APIStatusError) -> ModelFault | ModelRefused:
        """The vendor's own sentence, without our key should it repeat it."""
        told = error_in(error.body)
        sentence = str(told.get("message") or "no reason given").replace(self._api_key or "\0", "…")
        detail = f"HTTP {error.status_code}: {sentence}"[:MAX_DETAIL_CHARACTERS]
        return fault_of(error.status_code, told, detail=detail, retry_after=wished_wait(error.response.headers))


def _lost(error: BaseException) -> ModelFault:
    """By what lies beneath: the SDK's transport calls every broken connection a timeout."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return timed_out()
    return ModelFault(FaultKind.CONNECTION, detail=type(error).__name__)
