"""The one loop: ask the model, run the tools it wants, until it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from chat.closing import Answering, SourceCheck
from chat.duties import MISSING, Act, Close, Correct, Duties, Judgement, Orders, Over
from chat.errors import DutyMissed
from chat.events import (
    ConfirmationRequired,
    ContentChunk,
    ContentReplaced,
    ReasoningChunk,
    StatusUpdate,
    ToolCallStart,
)
from chat.hearing import Hearing
from chat.marks import unmarked
from chat.memory.results import fold_results
from chat.messages import ToolCall, ToolResults, Transcript, Usage, UserMessage
from chat.profiles import Profile
from chat.sources import Sources
from chat.strategies.base import Card, ModelRequest, ModelStrategy
from chat.tools.executor import CallDone, Toolbox
from chat.tools.generate_response import confidence_in
from chat.tools.refusals import Refused
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


@dataclass(frozen=True, slots=True)
class Closed:
    """The answer has left through the closing tool, with the model's confidence in it."""

    confidence: float | None


Happening = (
    ContentChunk
    | ContentReplaced
    | ReasoningChunk
    | StatusUpdate
    | ToolCallStart
    | ConfirmationRequired
    | CallDone
    | TurnStarted
    | TurnEnded
    | Closed
)


async def run_loop(
    transcript: Transcript,
    *,
    strategy: ModelStrategy,
    card: Card,
    toolbox: Toolbox,
    duties: Duties,
    profile: Profile,
    sources: Sources,
) -> AsyncGenerator[Happening]:
    """Yield what happens and grow `transcript`, until the model has answered: in words, or by the closing tool.

    Money, storage and the way a run ends are the caller's. On the last turn, and once a limit is spent, no tool but the
    closing one may be called, so a run closes with an answer. Raises ModelFault, ModelRefused and DutyMissed.
    """
    since = len(transcript.messages)
    settled = max(0, since - 1)
    acting, check = _Acting(transcript, toolbox, duties), SourceCheck(sources)
    for turn in range(1, profile.max_turns + 1):
        orders = duties.orders(is_last=turn == profile.max_turns, is_spent=toolbox.is_spent)
        yield TurnStarted(turn)
        answering = _answering(orders, toolbox, check, turn)
        hearing = Hearing(turn, sources, is_silent=orders.is_silent, answering=answering)
        failpoint("before_model_call")
        async with aclosing(strategy.stream(_request(transcript, card, toolbox, profile, orders, settled))) as pieces:
            async for piece in pieces:
                for said in hearing.take(piece):
                    yield said
                    failpoint("after_piece")
        complete = hearing.complete
        calls = complete.reply.tool_calls
        yield TurnEnded(turn, complete.usage, goes_on=bool(calls), card=complete.card or card)
        transcript.messages.append(replace(complete.reply, text=unmarked(complete.reply.text)))
        judgement = duties.judge(orders, calls)
        async with aclosing(acting.follow(judgement, orders, calls, answering)) as steps:
            async for step in steps:
                yield step
        if acting.is_over:
            return
        fold_results(transcript.messages, since=since)
        settled = len(transcript.messages)
    raise DutyMissed(MISSING, tool=duties.owed)


def _answering(orders: Orders, toolbox: Toolbox, check: SourceCheck, turn: int) -> Answering | None:
    if orders.closing is None:
        return None
    return Answering(toolbox.tool(orders.closing), toolbox, check, turn, may_send_back=not orders.is_last)


def _request(
    transcript: Transcript, card: Card, toolbox: Toolbox, profile: Profile, orders: Orders, settled: int
) -> ModelRequest:
    is_offered = {orders.closing} if orders.only_closing else {spec.name for spec in toolbox.specs}
    return ModelRequest(
        card,
        transcript.system,
        tuple(transcript.messages),
        tuple(spec for spec in toolbox.specs if spec.name in is_offered),
        must_call=orders.must_call,
        max_tokens=profile.max_tokens,
        settled=settled,
        may_call=orders.may_call,
        spoken_tool=orders.closing,
    )


@dataclass(slots=True)
class _Acting:
    """Does what was judged of a turn: runs its calls, corrects the model, or lets the answer leave."""

    transcript: Transcript
    toolbox: Toolbox
    duties: Duties
    is_over: bool = False

    async def follow(
        self, judgement: Judgement, orders: Orders, calls: Sequence[ToolCall], answering: Answering | None
    ) -> AsyncGenerator[Happening]:
        match judgement:
            case Over():
                self.is_over = True
            case Correct(words):
                self.transcript.messages.append(UserMessage(words))
            case Act(barred):
                async with aclosing(self._run(calls, barred)) as steps:
                    async for step in steps:
                        yield step
            case Close(call):
                assert answering is not None
                async with aclosing(self._close(answering, orders, call, calls)) as steps:
                    async for step in steps:
                        yield step

    async def _close(
        self, answering: Answering, orders: Orders, call: ToolCall, calls: Sequence[ToolCall]
    ) -> AsyncGenerator[Happening]:
        for said in answering.conclude(call):
            yield said
        refusal, given = answering.refusal, answering.call or call
        barred = {} if refusal is None else {other.id: refusal for other in calls}
        async with aclosing(self._run((given,) if refusal is None else calls, barred)) as steps:
            async for step in steps:
                yield step
        if refusal is None:
            yield Closed(confidence_in(given.arguments or {}))
            self.is_over = True
        elif not answering.is_sent_back:
            self.duties.note_refused(orders, refusal)

    async def _run(self, calls: Sequence[ToolCall], barred: Mapping[str, Refused]) -> AsyncGenerator[Happening]:
        async with aclosing(self.toolbox.run(calls, barred=barred)) as steps:
            async for step in steps:
                match step:
                    case ToolResults():
                        self.transcript.messages.append(step)
                    case CallDone(record=record, end=end):
                        self.duties.note(record.tool, end)
                        yield step
                    case _:
                        yield step
