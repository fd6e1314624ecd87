"""Asking a vendor again, where that can help and nobody has seen a word yet."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from chat.errors import FaultKind, ModelFault
from chat.strategies.base import ModelRequest, ModelStrategy, StrategyEvent, TextPiece
from chat.strategies.base import Retrying as TryingAgain

MAX_TRIES_AGAIN = {
    FaultKind.TIMEOUT: 1,
    FaultKind.CONNECTION: 2,
    FaultKind.RATE_LIMITED: 2,
    FaultKind.OVERLOADED: 2,
    FaultKind.SERVER: 2,
    FaultKind.CUT_SHORT: 2,
    FaultKind.MALFORMED: 2,
    FaultKind.EMPTY: 2,
    FaultKind.REJECTED: 0,
}
REASONS = {
    FaultKind.TIMEOUT: "The model took too long to begin.",
    FaultKind.CONNECTION: "The model could not be reached.",
    FaultKind.RATE_LIMITED: "The model's vendor asks us to slow down.",
    FaultKind.OVERLOADED: "The model is overloaded.",
    FaultKind.SERVER: "The model's vendor had a fault.",
    FaultKind.CUT_SHORT: "The answer was cut off before it began.",
    FaultKind.MALFORMED: "The model's answer could not be read.",
    FaultKind.EMPTY: "The model's answer was empty.",
}


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before asking again: doubling, with jitter, or as the vendor wishes up to the cap."""

    first_seconds: float = 0.5
    cap_seconds: float = 8

    def seconds(self, attempt: int, *, retry_after: float | None) -> float:
        if retry_after is not None:
            return min(retry_after, self.cap_seconds)
        longest = min(self.first_seconds * 2.0 ** (attempt - 1), self.cap_seconds)
        return longest * random.uniform(0.5, 1)


class Retrying:
    """Any strategy, asked again after a fault that may pass, before its first visible word and never after.

    A timeout is asked again once, everything else that may pass twice, and the whole call at most twice. Reasoning and
    tool calls announced before a `TryingAgain` belong to the failed call and come again from the start.
    """

    def __init__(self, inner: ModelStrategy, *, backoff: Backoff | None = None) -> None:
        self._inner = inner
        self._backoff = backoff or Backoff()

    @property
    def name(self) -> str:
        return self._inner.name

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        faults: list[FaultKind] = []
        while True:
            is_visible = False
            try:
                async with aclosing(self._inner.stream(request)) as events:
                    async for event in events:
                        is_visible = is_visible or isinstance(event, TextPiece)
                        yield event
                return
            except ModelFault as fault:
                faults.append(fault.kind)
                if is_visible or not _may_pass(faults):
                    raise
                wait = self._backoff.seconds(len(faults), retry_after=fault.retry_after)
            yield TryingAgain(REASONS[faults[-1]], attempt=len(faults))
            await asyncio.sleep(wait)


def _may_pass(faults: list[FaultKind]) -> bool:
    newest = faults[-1]
    is_within_kind = faults.count(newest) <= MAX_TRIES_AGAIN[newest]
    return is_within_kind and len(faults) <= max(MAX_TRIES_AGAIN.values())
