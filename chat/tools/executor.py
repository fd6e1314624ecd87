"""Runs the tool calls of a turn: checked, paid for, side by side, in time, and told in call order."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import structlog

from chat.events import ConfirmationRequired, StatusUpdate, ToolCallResult, ToolCallStart
from chat.limits import calls_reached, seconds_reached
from chat.messages import ToolCall, ToolResult, ToolResults, ToolSpec
from chat.profiles import Profile
from chat.tools.attempt import attempt, within
from chat.tools.base import Tool, ToolContext, ToolFailure, ToolOutput, ToolRecord
from chat.tools.confirmation import REFUSALS, TOLD, Decision
from chat.tools.corrections import Corrections
from chat.tools.guard import Guard
from chat.tools.progress import Telling
from chat.tools.purse import CallEnd, Purse, Verdict, Wanted
from chat.tools.refusals import Refused
from chat.tools.showing import clean, shown
from chat.tools.validator import Valid, validate
from klerai.failpoints import failpoint

MAX_RESULT_CHARACTERS = 100_000
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call has ended: what the client sees and what memory keeps, logged together."""

    event: ToolCallResult
    record: ToolRecord
    end: CallEnd


class Toolbox:
    """The tools of one run, with what is left of its limits."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        profile: Profile,
        context: ToolContext,
        purse: Purse,
        query_ref: str,
        guard: Guard,
    ) -> None:
        self.specs = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools.values())
        self.is_spent = False
        self._tools = tools
        self._profile = profile
        self._texts: dict[str, str] = {}
        self._context = replace(context, results=self._texts)
        self._purse = purse
        self._query_ref = query_ref
        self._guard = guard
        self._corrections = Corrections()
        self._calls = 0
        self._seconds = 0.0
        self._begun: dict[str, ToolCallStart] = {}
        self._told: dict[str, dict[str, Any]] = {}

    def tool(self, name: str) -> Tool:
        return self._tools[name]

    def begin(self, call: ToolCall) -> ToolCallStart:
        """The start of a call that is heard while it is written, with the arguments known by now. `run` goes on."""
        start = ToolCallStart(self._next_ref(), call.name, self._label(call), shown(call.arguments or {}))
        self._begun[call.id] = start
        self._told[start.id] = start.arguments
        return start

    def drop(self, call_id: str, why: str) -> CallDone:
        """The end of a call that was begun and broke off before it was whole."""
        start = self._begun.pop(call_id)
        wanted = Wanted(start.id, start.name, "")
        return self._done(wanted, CallEnd.FAILED, start.label, start.arguments, why, why, 0)

    async def run(
        self, calls: Sequence[ToolCall], *, barred: Mapping[str, Refused] = MappingProxyType({})
    ) -> AsyncGenerator[ToolCallStart | ConfirmationRequired | StatusUpdate | CallDone | ToolResults]:
        """Yield each call's start, what waits for the person, how the calls go and each end as it comes; last the
        results in call order. `barred` calls, by their ids, are refused, and what they would have done is not shown.
        """
        numbered: list[tuple[str, ToolCall]] = []
        for call in (replace(call, name=clean(call.name)[:128]) for call in calls):
            start = self._begun.pop(call.id, None)
            if start is None:
                given = {} if call.id in barred else shown(call.arguments or {})
                start = ToolCallStart(self._next_ref(), call.name, self._label(call), given)
                yield start
            numbered.append((start.id, call))
        free = [(call.name, validate(call, self._tools)) for _, call in numbered if call.id not in barred]
        judged = iter(self._corrections.note(free))
        checked = [barred.get(call.id) or next(judged) for _, call in numbered]
        outcomes: dict[str, CallDone] = {}
        names = {ref: call.name for ref, call in numbered}
        async for ref, told in self._guard.ask(list(zip(names, checked, strict=True))):
            match told:
                case ConfirmationRequired():
                    yield told
                case Decision():
                    wanted = Wanted(ref, names[ref], "")
                    outcomes[ref] = self._refused(wanted, CallEnd.UNCONFIRMED, REFUSALS[told], TOLD[told])
        running = await self._admit(numbered, checked, outcomes)
        for done in list(outcomes.values()):
            yield done
        async for news in self._side_by_side(running):
            if isinstance(news, CallDone):
                outcomes[news.record.ref] = news
            yield news
        for _, valid in running:
            self._guard.note(valid.tool)
        yield ToolResults(
            tuple(
                ToolResult(call.id, call.name, self._texts[ref], outcomes[ref].record.is_ok, ref)
                for ref, call in numbered
            )
        )

    async def _admit(
        self,
        numbered: Sequence[tuple[str, ToolCall]],
        checked: Sequence[Valid | Refused],
        outcomes: dict[str, CallDone],
    ) -> list[tuple[Wanted, Valid]]:
        """Sort out what may not run, into `outcomes`; return what may, its price on hold."""
        asking: list[tuple[Wanted, Valid]] = []
        for (ref, call), verdict in zip(numbered, checked, strict=True):
            match verdict:
                case _ if ref in outcomes:
                    continue
                case Refused():
                    wanted = Wanted(ref, call.name, "")
                    outcomes[ref] = self._refused(wanted, CallEnd.BLOCKED, verdict.text, "refused")
                case Valid(tool):
                    asking.append((Wanted(ref, tool.name, tool.category), verdict))
        counted = [(wanted, valid) for wanted, valid in asking if wanted.name != self._profile.closing_tool]
        for wanted, _ in counted[self._places_left(numbered, counted) :]:
            self.is_spent = True
            self._purse.note_limit(calls_reached(self._profile.max_tool_calls, mode=self._profile.title))
            limit = f"Not run: this mode makes at most {self._profile.max_tool_calls} tool calls a question. {_ANSWER}"
            outcomes[wanted.ref] = self._refused(wanted, CallEnd.LIMITED, limit, "not run, all its tool calls are used")
        asking = [(wanted, valid) for wanted, valid in asking if wanted.ref not in outcomes]
        admitted: list[tuple[Wanted, Valid]] = []
        funds = await self._purse.hold([wanted for wanted, _ in asking]) if asking else ()
        for (wanted, valid), fund in zip(asking, funds, strict=True):
            if fund is Verdict.GRANTED:
                admitted.append((wanted, valid))
                continue
            self.is_spent = True
            outcomes[wanted.ref] = self._refused(wanted, CallEnd.UNPAID, f"{_UNPAID[fund]} {_ANSWER}", _SHORT[fund])
        return admitted

    async def _side_by_side(self, running: Sequence[tuple[Wanted, Valid]]) -> AsyncGenerator[CallDone | StatusUpdate]:
        started = time.perf_counter()
        limit = self._profile.tool_seconds
        if self._profile.all_tools_seconds is not None:
            limit = min(limit, max(0.0, self._profile.all_tools_seconds - self._seconds))
        news: asyncio.Queue[StatusUpdate | asyncio.Task[CallDone]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._one(wanted, valid, limit, news.put_nowait)) for wanted, valid in running]
        for task in tasks:
            task.add_done_callback(news.put_nowait)
        left = len(tasks)
        try:
            while left:
                match await news.get():
                    case StatusUpdate() as update:
                        yield update
                    case finished:
                        left -= 1
                        yield finished.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._seconds += time.perf_counter() - started
        most = self._profile.all_tools_seconds
        if most is not None and self._seconds >= most:
            self.is_spent = True
            self._purse.note_limit(seconds_reached(self._seconds, most, mode=self._profile.title))

    async def _one(self, wanted: Wanted, valid: Valid, limit: float, tell: Callable[[StatusUpdate], None]) -> CallDone:
        started = time.perf_counter()
        arguments = self._told.get(wanted.ref) or shown(valid.arguments)
        label = valid.tool.label(arguments)
        failpoint("before_tool")
        output = await self._outcome(valid, limit, Telling(clean(label), tell))
        failpoint("after_tool")
        duration_ms = round((time.perf_counter() - started) * 1000)
        match output:
            case ToolOutput(text, summary, reopens, card):
                return self._done(wanted, CallEnd.DONE, label, arguments, text, summary, duration_ms, reopens, card)
            case ToolFailure(message):
                return self._done(wanted, CallEnd.FAILED, label, arguments, output.told, message, duration_ms)

    async def _outcome(self, valid: Valid, limit: float, progress: Telling) -> ToolOutput | ToolFailure:
        try:
            context = replace(self._context, seconds=limit, progress=progress)
            return await within(limit, attempt(valid.tool, valid.arguments, context))
        except TimeoutError:
            return ToolFailure(f"{valid.tool.name} did not answer within {limit:g} seconds.", is_retryable=False)
        except Exception as error:
            where = traceback.format_tb(error.__traceback__)  # without the message, which may quote what is private
            logger.error("tool_broke", tool=valid.tool.name, error=type(error).__name__, where=where)
            return ToolFailure(f"{valid.tool.name} broke. Go on without it.", is_retryable=False)

    def _refused(self, wanted: Wanted, end: CallEnd, text: str, summary: str) -> CallDone:
        tool = self._tools.get(wanted.name)
        return self._done(wanted, end, tool.name if tool else wanted.name, {}, text, summary, 0)

    def _done(
        self,
        wanted: Wanted,
        end: CallEnd,
        label: str,
        arguments: dict[str, object],
        text: str,
        summary: str,
        duration_ms: int,
        reopens: str = "",
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> CallDone:
        text, summary, label = clean(text), clean(summary), clean(label)
        if len(text) > MAX_RESULT_CHARACTERS:
            cut = len(text) - MAX_RESULT_CHARACTERS
            text = f"{text[:MAX_RESULT_CHARACTERS]}\n[{cut:,} more characters were cut]"
        credits = self._purse.close(wanted, end)
        is_ok = end is CallEnd.DONE
        event = ToolCallResult(
            id=wanted.ref,
            name=wanted.name,
            ok=is_ok,
            summary=summary[:300],
            duration_ms=duration_ms,
            credits=credits,
            error=None if is_ok else summary[:300],
        )
        card = {
            **more,
            "label": label,
            "arguments": arguments,
            "summary": event.summary,
            "duration_ms": duration_ms,
            "credits": credits,
            "error": event.error,
        }
        self._texts[wanted.ref] = text
        kept = event.summary if reopens else text
        record = ToolRecord(wanted.ref, wanted.name, kept, is_ok, card, reopens, text if reopens else "")
        return CallDone(event, record, end)

    def _next_ref(self) -> str:
        self._calls += 1
        return f"{self._query_ref}-t{self._calls}"

    def _places_left(self, numbered: Sequence[object], asking: Sequence[object]) -> int:
        before = self._calls - len(numbered)
        return max(0, min(len(asking), self._profile.max_tool_calls - before))

    def _label(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None or call.arguments is None:
            return call.name
        return clean(tool.label(shown(call.arguments)))[:300]


_ANSWER = "Answer now with what you have."
_UNPAID = {
    Verdict.CEILING: "Not run: this question reached the most it may cost.",
    Verdict.BALANCE: "Not run: the person's credits are used up.",
}
_SHORT = {
    Verdict.CEILING: "not run, the question reached its ceiling",
    Verdict.BALANCE: "not run, the credits are used up",
}
