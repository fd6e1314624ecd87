"""How to talk to a vendor: one protocol, and what a model says through it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from chat.messages import AssistantMessage, Message, ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class Card:
    """One model and what it can do. `thinking` is the way to ask for it: none, adaptive, manual or enabled."""

    name: str
    strategy: str
    model: str
    thinking: str = "none"
    honours_forced_tool: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `must_call` names a tool the model has to use in this turn, where the card honours that.

    `settled` counts the leading messages that will stand unchanged in the next call, so that a vendor's cache
    breakpoint can be put behind them. With `may_call` false the tools stay in the prompt but must not be called.
    `spoken_tool` names one whose arguments are given out while the model writes them.
    """

    card: Card
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    must_call: str | None = None
    max_tokens: int = 4096
    settled: int = 0
    may_call: bool = True
    spoken_tool: str | None = None


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Words of the answer, as they come."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """Words of the model's reasoning, as they come."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDetected:
    """A tool call has begun; its arguments are still being written."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsPiece:
    """More of the JSON of a call's arguments, of a tool that is spoken."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call failed before its first word and is made again."""

    reason: str
    attempt: int


@dataclass(frozen=True, slots=True)
class NextCard:
    """A card could not answer and the one with this name is asked in its place."""

    reason: str
    card_name: str


@dataclass(frozen=True, slots=True)
class TurnComplete:
    """The whole turn. It is the last thing a stream yields; the run goes on if the reply asks for tools.

    `is_cut` is true when the vendor stopped at max_tokens; `card` is the one that answered, where there were several.
    """

    reply: AssistantMessage
    usage: Usage
    model: str
    is_cut: bool = False
    card: Card | None = None


StrategyEvent = TextPiece | ReasoningPiece | ToolCallDetected | ArgumentsPiece | Retrying | NextCard | TurnComplete


class ModelStrategy(Protocol):
    """A vendor's way of being asked.

    `stream` yields pieces and ends with exactly one TurnComplete, or raises ModelFault or ModelRefused. A body that
    ends early is a ModelFault. Leaving the iterator early closes the connection to the vendor.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]: ...

    async def aclose(self) -> None: ...
