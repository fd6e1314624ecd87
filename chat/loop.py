"""The one loop: ask the model, run the tools it wants, until it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from chat.errors import FaultKind, ModelFault
from chat.events import ContentChunk, ReasoningChunk, StatusUpdate, ToolCallStart
from chat.messages import ToolResults, Transcript, Usage
from chat.profiles import Profile
from chat.strategies.base import (
    Card,
    ModelRequest,
    ModelStrategy,
    NextCard,
    ReasoningPiece,
    Retrying,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)
from chat.tools.executor import CallDone, Toolbox
from chat.tools.showing import clean
from klerai.failpoints import failpoint


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A model call begins. `turn` counts from 1."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A model call has ended, answered by `card`. `goes_on` is true when it asked for tools."""

    turn: int
    usage: Usage
    goes_on: bool
    card: Card


Happening = ContentChunk | ReasoningChunk | StatusUpdate | ToolCallStart | CallDone | TurnStarted | TurnEnded


async def run_loop(
    transcript: Transcript, *, strategy: ModelStrategy, card: Card, toolbox: Toolbox, profile: Profile
) -> AsyncGenerator[Happening]:
    """Yield what happens and grow `transcript`, until the model asks for no tool.

    Money, storage and the way a run ends are the caller's. On the last turn, and once a limit is spent, tools may
    not be called, so a run closes with words. Raises ModelFault and ModelRefused.
    """
    settled = max(0, len(transcript.messages) - 1)
    for turn in range(1, profile.max_turns + 1):
        may_call = turn < profile.max_turns and not toolbox.is_spent
        yield TurnStarted(turn)
        complete: TurnComplete | None = None
        request = ModelRequest(
            card,
            transcript.system,
            tuple(transcript.messages),
            toolbox.specs,
            max_tokens=profile.max_tokens,
            settled=settled,
            may_call=may_call,
        )
        failpoint("before_model_call")
        async with aclosing(strategy.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TurnComplete):
                    complete = piece
                else:
                    yield _happening(piece, turn)
                    failpoint("after_piece")
        if complete is None:
            raise ModelFault(FaultKind.CUT_SHORT)
        calls = complete.reply.tool_calls
        yield TurnEnded(turn, complete.usage, goes_on=bool(calls), card=complete.card or card)
        transcript.messages.append(complete.reply)
        if not calls:
            return
        if not may_call:
            raise ModelFault(FaultKind.MALFORMED, detail="the model called a tool when none was offered")
        async with aclosing(toolbox.run(calls)) as steps:
            async for step in steps:
                if isinstance(step, ToolResults):
                    transcript.messages.append(step)
                else:
                    yield step
        settled = len(transcript.messages)


def _happening(piece: TextPiece | ReasoningPiece | ToolCallDetected | Retrying | NextCard, turn: int) -> Happening:
    match piece:
        case TextPiece(text):
            return ContentChunk(clean(text), turn)
        case ReasoningPiece(text):
            return ReasoningChunk(text)
        case ToolCallDetected(name=name):
            return StatusUpdate("tools", f"Preparing {clean(name)[:128]}")
        case Retrying(reason, attempt):
            return StatusUpdate("retrying", f"{reason} Trying again ({attempt}).")
        case NextCard(reason, card_name):
            return StatusUpdate("retrying", f"{reason} Asking {card_name} instead.")
