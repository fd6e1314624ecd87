"""The cards of a run, each asked when the one before it cannot answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import structlog

from chat.errors import FaultKind, ModelFault
from chat.messages import AssistantMessage, Message
from chat.strategies.base import Card, ModelRequest, ModelStrategy, NextCard, StrategyEvent, TextPiece, TurnComplete
from chat.strategies.retrying import REASONS

logger = structlog.get_logger(__name__)
_REASONS = {**REASONS, FaultKind.REJECTED: "The model's vendor did not take the question."}


class InOrder:
    """Strategies with their cards, for one run: the next one is asked when a call has failed before its first word.

    A run stays with the card that answered. What an earlier card reasoned is not shown to a later one: its signature
    is that model's own.
    """

    def __init__(self, choices: Sequence[tuple[ModelStrategy, Card]]) -> None:
        self._choices = choices
        self._at = 0
        self._foreign = 0

    @property
    def name(self) -> str:
        return self._choices[self._at][0].name

    @property
    def card(self) -> Card:
        """The card that is asked now: at the end of a run the one that answered, or that failed last."""
        return self._choices[self._at][1]

    @property
    def tried(self) -> int:
        """How many cards were asked so far."""
        return self._at + 1

    async def aclose(self) -> None:
        """The strategies outlive the run."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        while True:
            strategy, card = self._choices[self._at]
            asked = replace(request, card=card, messages=self._readable(request.messages))
            is_visible = False
            try:
                async with aclosing(strategy.stream(asked)) as events:
                    async for event in events:
                        is_visible = is_visible or isinstance(event, TextPiece)
                        yield replace(event, card=card) if isinstance(event, TurnComplete) else event
                return
            except ModelFault as fault:
                if is_visible or self.tried == len(self._choices):
                    raise
                logger.warning("card_failed", card=card.name, kind=fault.kind, detail=fault.detail[:500])
                reason = _REASONS[fault.kind]
            self._at += 1
            self._foreign = len(request.messages)
            yield NextCard(reason, self.card.name)

    def _readable(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            replace(message, vendor="", blocks=())
            if index < self._foreign and isinstance(message, AssistantMessage)
            else message
            for index, message in enumerate(messages)
        )
