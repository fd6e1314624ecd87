"""The runs of this process: a task each, started once, stopped at once, ended in one way.

A run never belongs to a view or a socket: those watch the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from uuid import UUID

import structlog
from django.db import OperationalError

from billing import credits
from billing.pricing import TOOL
from chat.confirming import AsksPerson
from chat.deadlines import Deadline
from chat.endings import INTERNAL, INTERRUPTED, Answered, Bill, Ending, Failed, StoppedByPerson, end_run
from chat.errors import DutyMissed, LeaseLost, ModelFault, ModelRefused
from chat.eventlog import Channel, EventLog
from chat.events import Logged
from chat.metering import Tab
from chat.models import Run
from chat.orchestrator import Beside, Route, answer
from chat.profiles import Profile
from chat.questions import Question
from chat.shortage import shortfall_json, what_binds
from chat.sources import Sources
from chat.strategies.base import Card
from chat.strategies.in_order import InOrder
from chat.tools.base import Tool
from chat.tools.confirmation import Confirmer
from chat.tools.executor import CallDone
from klerai.database import in_database
from klerai.failpoints import failpoint
from klerai.logs import about_run

logger = structlog.get_logger(__name__)
DATABASE_RETRIES = 20
DUTY_MISSED = {
    "mandatory_tool_missing": "The model did not use {}, which this mode demands, though it was asked again. "
    "Nothing was charged. Ask again, or in another mode.",
    "response_tool_failed": "The model gave its answer twice in a form that cannot be used. Nothing was charged. Ask "
    "again, or in another mode.",
}
OUT_OF_CREDITS = Failed(
    "insufficient_credits",
    "Your credits ran out before there was an answer. Nothing was charged: what was on hold comes back.",
)


class Why(Enum):
    """Why a task was cancelled."""

    STOP = auto()
    LOST = auto()
    SHUTDOWN = auto()
    BROKEN = auto()


@dataclass(slots=True)
class Live:
    """A run of this process."""

    run: Run
    question: Question
    channel: Channel
    tab: Tab
    is_attended: bool
    sources: Sources = field(default_factory=Sources)
    task: asyncio.Task[None] | None = None
    why: Why | None = None
    is_ending: bool = False

    def cancel(self, why: Why) -> None:
        """End the run early, once; an end that has begun is not disturbed, unless it is no longer ours to make."""
        if self.why is None and not self.is_ending:
            self.why = why
            if self.task is not None:
                self.task.cancel()


class Runner:
    """Starts, stops and ends runs. `route` and `tools` are asked anew for every run."""

    def __init__(
        self,
        *,
        log: EventLog,
        tools: Callable[[Run], Awaitable[Mapping[str, Tool]]],
        profiles: Mapping[str, Profile],
        route: Callable[[Run], Route],
        max_runs: int,
        afterwards: Callable[[UUID], Awaitable[None]] | None = None,
    ) -> None:
        self._log = log
        self._profiles = profiles
        self._tools = tools
        self._route = route
        self.max_runs = max_runs
        self._afterwards = afterwards
        self._behind: dict[UUID, asyncio.Task[None]] = {}
        self._live: dict[UUID, Live] = {}
        self._is_open = True

    @property
    def has_room(self) -> bool:
        return self._is_open and self.live_runs < self.max_runs

    @property
    def live_runs(self) -> int:
        return len(self._live)

    def start(self, run: Run, question: Question, *, is_attended: bool) -> None:
        """Begin a run that was just taken in, with its question; `is_attended` if its person can be asked."""
        tab = Tab(run.person, run_key=run.pk, query_ref=run.query_ref, ceiling=run.ceiling_credits)
        channel = Channel(
            run,
            on_lost=lambda: self._cancel(run.pk, Why.LOST),
            on_stop=lambda: self._cancel(run.pk, Why.STOP),
            on_broken=lambda: self._cancel(run.pk, Why.BROKEN),
        )
        live = Live(run, question, channel, tab, is_attended)
        self._live[run.pk] = live
        self._log.open(channel)
        live.task = asyncio.create_task(self._conduct(live), name=f"run {run.run_id}")

    def stop(self, run_key: UUID) -> None:
        """Stop a run of this process at once; of another process the flag on its row does it."""
        self._cancel(run_key, Why.STOP)

    async def settled(self, run_key: UUID, *, seconds: float) -> None:
        """Wait a while for what is done after the answer of a run of this process."""
        task = self._behind.get(run_key)
        if task is not None:
            await asyncio.wait([task], timeout=seconds)

    async def drain(self, *, seconds: float) -> None:
        """Take no new runs; let those here finish for a while, end the rest as interrupted."""
        self._is_open = False
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for run_key in list(self._live):
            self._cancel(run_key, Why.SHUTDOWN)
        for behind in list(self._behind.values()):  # summaries: the mechanical ones stand
            behind.cancel()
        if tasks := [*tasks, *self._behind.values()]:
            await asyncio.wait(tasks, timeout=10)

    def _cancel(self, run_key: UUID, why: Why) -> None:
        live = self._live.get(run_key)
        if live is not None:
            live.cancel(why)

    async def _conduct(self, live: Live) -> None:
        with about_run(live.run.run_id):
            try:
                route = self._route(live.run)
                models = InOrder([(one.strategy, one.card) for one in (route, *route.spares)])
                ending = await self._ending(live, route, models)
                live.is_ending = True
                failpoint("before_flush")
                if live.why is not Why.LOST:
                    await self._end(live, ending, models.card)
            finally:
                self._live.pop(live.run.pk, None)
                if not live.channel.is_closed:  # its end could not be written: without a heartbeat the sweeper makes it
                    self._log.close(live.channel, None)

    async def _ending(self, live: Live, route: Route, models: InOrder) -> Ending:
        profile = self._profiles[live.run.mode]
        seconds = profile.deadline_seconds
        try:
            async with asyncio.timeout(seconds) as timer:
                confirmer = AsksPerson(live.run.pk, Deadline(timer), live.is_attended)
                asked = replace(route, strategy=models, card=models.card, spares=())
                return await self._answer(live, asked, profile, confirmer)
        except TimeoutError:
            return Failed(
                "deadline_exceeded",
                f"This took longer than {seconds:g} seconds. It was ended there. The text so far is kept, "
                "and nothing was charged.",
                details={"seconds": seconds},
            )
        except ModelRefused as refused:
            return Failed(
                "safety_blocked",
                "The model declined to answer this. Nothing was charged. You can reword it.",
                is_retryable=False,
                details={"by": "model", "reason": refused.category or "unspecified"},
            )
        except DutyMissed as missed:
            logger.warning("duty_missed", code=missed.code, tool=missed.tool, reason=missed.reason[:500])
            return _duty_missed(live, missed)
        except ModelFault as fault:
            logger.warning("model_failed", kind=fault.kind, detail=fault.detail[:500])
            return _model_failure(live, fault, models.tried)
        except asyncio.CancelledError:
            return self._cancelled(live)
        except Exception:
            logger.exception("run_broke")
            return INTERNAL

    async def _answer(self, live: Live, route: Route, profile: Profile, confirmer: Confirmer) -> Ending:
        ending: Ending = INTERNAL
        asked = live.question
        beside = Beside(live.tab, live.sources, confirmer, asked.history, asked.knowledge_base)
        tools = await self._tools(live.run) if live.run.has_tools or profile.duties else {}
        steps = answer(live.run, asked.message, profile=profile, route=route, tools=tools, beside=beside)
        async with aclosing(steps) as happenings:
            async for step in happenings:
                match step:
                    case Answered():
                        ending = step
                    case CallDone(event, record):
                        self._log.append(live.channel, event, record)
                    case _:
                        self._log.append(live.channel, step)
        return ending

    def _cancelled(self, live: Live) -> Ending:
        task = asyncio.current_task()
        if live.why is not None and task is not None:
            task.uncancel()
        match live.why:
            case Why.STOP:
                return StoppedByPerson(tuple(live.sources.cited), live.sources.named)
            case Why.BROKEN:
                return INTERNAL
            case _:
                return INTERRUPTED

    async def _end(self, live: Live, ending: Ending, card: Card) -> None:
        """Write the end, waiting for a database that is away; a run that is no longer ours is left alone."""
        await self._log.flush(live.channel)
        for attempt in range(DATABASE_RETRIES):
            try:
                terminal = await asyncio.shield(in_database(_end, live.run, ending, live.tab, card))
            except LeaseLost:
                return
            except OperationalError:
                logger.warning("end_waits_for_database", attempt=attempt)
                await asyncio.sleep(min(2.0, 0.1 * 2**attempt))
            else:
                self._follow_up(live.run.pk)
                self._log.close(live.channel, terminal)
                logger.info("run_ended", state=terminal.type, error=terminal.data.get("code"))
                return

    def _follow_up(self, run_key: UUID) -> None:
        """Start what nobody waits for: the summaries."""
        if self._afterwards is None or not self._is_open:
            return
        task = asyncio.create_task(self._after(run_key), name=f"after run {run_key}")
        self._behind[run_key] = task
        task.add_done_callback(lambda _: self._behind.pop(run_key, None))

    async def _after(self, run_key: UUID) -> None:
        assert self._afterwards is not None
        try:
            await self._afterwards(run_key)
        except Exception:
            logger.exception("after_run_broke")


def _end(run: Run, ending: Ending, tab: Tab, card: Card) -> Logged:
    if isinstance(ending, Failed) and ending.code == OUT_OF_CREDITS.code:
        ending = _out_of_credits(run, ending)
    return end_run(run, ending, Bill(tab.lines, tab.facts(card)))


def _duty_missed(live: Live, missed: DutyMissed) -> Failed:
    if live.tab.is_out_of_credits:
        return OUT_OF_CREDITS
    words = DUTY_MISSED[missed.code].format(missed.tool)
    return Failed(missed.code, words, details={"tool": missed.tool, "reason": missed.reason})


def _model_failure(live: Live, fault: ModelFault, tried: int) -> Failed:
    if live.tab.is_out_of_credits and not live.channel.has_words:
        return OUT_OF_CREDITS
    told = f" {tried} models were tried." if tried > 1 else ""
    return Failed(
        "model_unavailable",
        f"The model did not answer.{told} Nothing was charged. Try again.",
        details={"reason": str(fault.kind), "models_tried": tried},
    )


def _out_of_credits(run: Run, ending: Failed) -> Failed:
    """The same end with the limit that binds, as it stands while the run's own credits are on hold."""
    shortfall = credits.shortfall_of(run.person, required=TOOL)
    words = f"{ending.message} {what_binds(run.person, shortfall)}"
    return replace(ending, message=words, details=shortfall_json(shortfall))
