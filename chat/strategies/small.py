"""A small model, asked once for a structured answer: summaries, picks, titles."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import orjson

from chat.errors import FaultKind, ModelFault
from chat.messages import AssistantMessage, ToolSpec, UserMessage
from chat.strategies.base import Card, ModelRequest, ModelStrategy, TurnComplete
from chat.structured import Structured

MAX_TOKENS = 2_048
SECONDS = 30


@dataclass(frozen=True, slots=True)
class SmallModel:
    """Any strategy, asked for one structured answer: the arguments of the one tool the model is made to call.

    A model that cannot be made to is asked once more when it did not. Raises ModelFault and ModelRefused; a caller can
    always do without.
    """

    strategy: ModelStrategy
    card: Card
    seconds: float = SECONDS

    async def __call__(self, task: str, material: str, *, answer: ToolSpec) -> Structured:
        asked = UserMessage(material)
        request = ModelRequest(self.card, task, (asked,), (answer,), must_call=answer.name, max_tokens=MAX_TOKENS)
        try:
            async with asyncio.timeout(self.seconds):
                first = await self._turn(request)
                fields = _fields(first.reply, answer.name)
                if fields is not None:
                    return Structured(fields, first.usage)
                if self.card.honours_forced_tool:
                    raise _unstructured()
                plainly = replace(asked, aside=f"Answer by calling the tool {answer.name}, and in no other way.")
                second = await self._turn(replace(request, messages=(plainly,)))
        except TimeoutError as error:
            raise ModelFault(FaultKind.TIMEOUT, detail="the small model did not answer in time") from error
        fields = _fields(second.reply, answer.name)
        if fields is None:
            raise _unstructured()
        return Structured(fields, first.usage + second.usage)

    async def _turn(self, request: ModelRequest) -> TurnComplete:
        async with aclosing(self.strategy.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TurnComplete):
                    return piece
        raise ModelFault(FaultKind.CUT_SHORT)


def _unstructured() -> ModelFault:
    return ModelFault(FaultKind.MALFORMED, detail="the small model gave no structured answer")


def _fields(reply: AssistantMessage, name: str) -> dict[str, Any] | None:
    """The arguments of the call, or JSON written as text by a model that could not be made to call."""
    for call in reply.tool_calls:
        if call.name == name and call.arguments is not None:
            return call.arguments
    try:
        found = orjson.loads(reply.text.strip().removeprefix("```json").strip("`\n "))
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
