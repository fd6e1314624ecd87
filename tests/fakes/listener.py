"""Listens to a strategy the way the loop does, and keeps what it heard."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from chat.errors import ModelFault, ModelRefused
from chat.messages import AssistantMessage, Message, ToolResult, ToolResults, ToolSpec, UserMessage
from chat.strategies.base import (
    ArgumentsPiece,
    Card,
    ModelRequest,
    ModelStrategy,
    ReasoningPiece,
    Retrying,
    StrategyEvent,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)

CARD = Card(name="Haiku", strategy="anthropic", model="claude-haiku-5-5")
SYSTEM_PROMPT = "You are KlerAI."
CALCULATOR = ToolSpec(
    "calculator",
    "Calculates.",
    {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
)


@dataclass(slots=True)
class Heard:
    """Everything one stream gave, and how it ended."""

    events: list[StrategyEvent] = field(default_factory=list)
    fault: ModelFault | None = None
    refusal: ModelRefused | None = None

    @property
    def pieces(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextPiece)]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningPiece))

    @property
    def announced(self) -> list[str]:
        return [event.name for event in self.events if isinstance(event, ToolCallDetected)]

    @property
    def arguments(self) -> dict[str, str]:
        """What was given out of the arguments of spoken tools, by call."""
        given: dict[str, str] = {}
        for event in self.events:
            if isinstance(event, ArgumentsPiece):
                given[event.id] = given.get(event.id, "") + event.text
        return given

    @property
    def retries(self) -> list[Retrying]:
        return [event for event in self.events if isinstance(event, Retrying)]

    @property
    def turn(self) -> TurnComplete:
        """The whole turn, which is the last thing said and said once."""
        assert self.fault is None, self.fault
        assert self.refusal is None, self.refusal
        turns = [event for event in self.events if isinstance(event, TurnComplete)]
        assert turns == self.events[-1:]
        return turns[0]

    @property
    def reply(self) -> AssistantMessage:
        return self.turn.reply


def asking(*messages: Message | str, card: Card = CARD, with_tools: bool = True) -> ModelRequest:
    said = tuple(UserMessage(message) if isinstance(message, str) else message for message in messages)
    return ModelRequest(card, SYSTEM_PROMPT, said, (CALCULATOR,) if with_tools else ())


def answered(heard: Heard) -> ToolResults:
    """A result for every call of the turn."""
    return ToolResults(tuple(ToolResult(call.id, call.name, "434") for call in heard.reply.tool_calls))


async def listen(strategy: ModelStrategy, request: ModelRequest) -> Heard:
    """One model call to its end, whatever that is."""
    heard = Heard()
    try:
        async with aclosing(strategy.stream(request)) as events:
            async for event in events:
                heard.events.append(event)
    except ModelFault as fault:
        heard.fault = fault
    except ModelRefused as refusal:
        heard.refusal = refusal
    return heard
