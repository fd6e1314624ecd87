"""The one loop: ask the model, run the tools it wants, until it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from chat.errors import FaultKind, ModelFault
from chat.events import ConfirmationRequired, ContentChunk, ReasoningChunk, StatusUpdate, ToolCallStart
from chat.marks import Unmarking, unmarked
from chat.memory.results import fold_results
from chat.messages import ToolResults, Transcript, Usage
from chat.profiles import Profile
from chat.sources import Citing, Sources
from chat.strategies.base import (
    ArgumentsPiece,
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


Happening = (
    ContentChunk
    | ReasoningChunk
    | StatusUpdate
    | ToolCallStart
    | ConfirmationRequired
    | CallDone
    | TurnStarted
    | TurnEnded
)


async def run_loop(
    transcript: Transcript,
    *,
    strategy: ModelStrategy,
    card: Card,
    toolbox: Toolbox,
    profile: Profile,
    sources: Sources,
) -> AsyncGenerator[Happening]:
    """Yield what happens and grow `transcript`, until the model asks for no tool.

    Money, storage and the way a run ends are the caller's. On the last turn, and once a limit is spent, tools may
    not be called, so a run closes with words. Raises ModelFault and ModelRefused.
    """
    since = len(transcript.messages)
    settled = max(0, since - 1)
    for turn in range(1, profile.max_turns + 1):
        may_call = turn < profile.max_turns and not toolbox.is_spent
        yield TurnStarted(turn)
        complete: TurnComplete | None = None
        request = _request(transcript, card, toolbox, profile, settled=settled, may_call=may_call)
        failpoint("before_model_call")
        async with aclosing(_heard(strategy, request, turn, Citing(sources))) as pieces:
            async for piece in pieces:
                if isinstance(piece, TurnComplete):
                    complete = piece
                else:
                    yield piece
                    failpoint("after_piece")
        if complete is None:
            raise ModelFault(FaultKind.CUT_SHORT)
        calls = complete.reply.tool_calls
        yield TurnEnded(turn, complete.usage, goes_on=bool(calls), card=complete.card or card)
        transcript.messages.append(replace(complete.reply, text=unmarked(complete.reply.text)))
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
        fold_results(transcript.messages, since=since)
        settled = len(transcript.messages)


def _request(
    transcript: Transcript, card: Card, toolbox: Toolbox, profile: Profile, *, settled: int, may_call: bool
) -> ModelRequest:
    return ModelRequest(
        card,
        transcript.system,
        tuple(transcript.messages),
        toolbox.specs,
        max_tokens=profile.max_tokens,
        settled=settled,
        may_call=may_call,
    )


async def _heard(
    strategy: ModelStrategy, request: ModelRequest, turn: int, citing: Citing
) -> AsyncGenerator[Happening | TurnComplete]:
    """One turn as the model says it: without the IDs it may write in front of its words, passages numbered anew."""
    unmarking = Unmarking()
    async with aclosing(strategy.stream(request)) as pieces:
        async for piece in pieces:
            match piece:
                case TurnComplete():
                    if rest := citing.feed(unmarking.rest()) + citing.rest():
                        yield ContentChunk(clean(rest), turn)
                    yield piece
                case TextPiece(text):
                    if shown := citing.feed(unmarking.feed(text)):
                        yield ContentChunk(clean(shown), turn)
                case ArgumentsPiece():
                    continue
                case _:
                    yield _happening(piece)


def _happening(piece: ReasoningPiece | ToolCallDetected | Retrying | NextCard) -> Happening:
    match piece:
        case ReasoningPiece(text):
            return ReasoningChunk(text)
        case ToolCallDetected(name=name):
            return StatusUpdate("tools", f"Preparing {clean(name)[:128]}")
        case Retrying(reason, attempt):
            return StatusUpdate("retrying", f"{reason} Trying again ({attempt}).")
        case NextCard(reason, card_name):
            return StatusUpdate("retrying", f"{reason} Asking {card_name} instead.")
