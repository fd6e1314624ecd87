"""The ledger against a small model of it, under random questions, clocks and journeys (BM6 for Free)."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from billing import audit, credits
from billing.credits import Held, Settlement
from billing.errors import AlreadyReleased, AlreadySettled
from billing.pricing import Line
from tests.credit_people import newcomer

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Pacific/Kiritimati", "Pacific/Pago_Pago"]
STARTS = [  # clocks that change, months and years that end
    datetime(2026, 3, 28, 22, 30, tzinfo=UTC),
    datetime(2026, 10, 24, 23, 30, tzinfo=UTC),
    datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
    datetime(2026, 4, 23, 21, 0, tzinfo=UTC),
    datetime(2028, 2, 28, 12, 0, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
]
STEPS = [timedelta(seconds=1), timedelta(hours=1), timedelta(hours=25), timedelta(days=31), timedelta(hours=-30)]
EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "50" if os.environ.get("KLERAI_THOROUGH") == "1" else "25"))


@dataclass
class Model:
    """What a person has, in plain numbers."""

    day: date = date.min
    daily: int = 0
    granted: int = 0
    pack: int = 0
    spent: int = 0
    expired: int = 0
    runs: dict[uuid.UUID, list[tuple[date, int, int]]] = field(default_factory=dict)

    def open(self, today: date, *, is_verified: bool) -> None:
        if today > self.day:
            self.expired += self.daily
            self.day, self.daily, self.granted = today, 0, 0
        if today == self.day and is_verified and not self.granted:
            self.daily = self.granted = 50

    def hold(self, run_id: uuid.UUID, amount: int) -> bool:
        daily = min(amount, self.daily)
        if amount - daily > self.pack:
            return False
        self.daily -= daily
        self.pack -= amount - daily
        self.runs.setdefault(run_id, []).append((self.day, daily, amount - daily))
        return True

    def held(self) -> int:
        return sum(daily + pack for holds in self.runs.values() for _, daily, pack in holds)

    def resolve(self, run_id: uuid.UUID, charge: int) -> None:
        """Pay one credit at a time: the oldest daily ones first, then packs; give back what is left."""
        holds = self.runs.pop(run_id)
        self.spent += charge
        for day, daily, _ in sorted(holds):
            paid = min(daily, charge)
            charge -= paid
            if day == self.day:
                self.daily += daily - paid
            else:
                self.expired += daily - paid
        self.pack += sum(pack for *_, pack in holds) - charge


class Ledger(RuleBasedStateMachine):
    runs = Bundle("runs")
    ended = Bundle("ended")

    @initialize(start=st.sampled_from(STARTS), zone=st.sampled_from(ZONES), pack=st.integers(1, 60))
    def arrive(self, start: datetime, zone: str, pack: int) -> None:
        self.person, self.model, self.now = newcomer(zone=zone), Model(), start
        self.person.email_verified_at = start
        self.open()
        credits.grant(self.person, amount=pack, reason="A pack", now=self.now)
        self.model.pack += pack

    def open(self) -> None:
        today = self.now.astimezone(ZoneInfo(self.person.time_zone)).date()
        self.model.open(today, is_verified=self.person.is_verified)

    @rule(change=st.sampled_from([*STEPS, *ZONES, True, False, None]))
    def the_world_moves_on(self, change: timedelta | str | bool | None) -> None:
        match change:
            case timedelta():
                self.now += change
            case str():
                self.person.time_zone = change
            case bool():
                self.person.email_verified_at = self.now if change else None
            case None:  # to the last second of the day
                (limit,) = credits.limits_of(self.person, now=self.now)
                self.now = limit.resets_at.astimezone(UTC) - timedelta(seconds=1)
        self.open()

    @rule(amount=st.integers(1, 60))
    def a_pack_is_granted(self, amount: int) -> None:
        credits.grant(self.person, amount=amount, reason="A pack", now=self.now)
        self.model.pack += amount

    @rule(target=runs, amount=st.integers(5, 40), tools=st.lists(st.sampled_from([2, 3, 10]), max_size=3))
    def a_question_is_asked(self, amount: int, tools: list[int]) -> Any:
        run_id = uuid.uuid4()
        if not self.holds(run_id, amount, ref=None):
            return multiple()
        for tool in tools:
            self.holds(run_id, tool, ref=uuid.uuid4().hex)
        return run_id

    @rule(run_id=runs, amount=st.sampled_from([2, 3, 10]))
    def another_tool_is_called(self, run_id: uuid.UUID, amount: int) -> None:
        self.holds(run_id, amount, ref=uuid.uuid4().hex)

    def holds(self, run_id: uuid.UUID, amount: int, *, ref: str | None) -> bool:
        held = credits.hold(self.person, run_id=run_id, amount=amount, ref=ref, now=self.now)
        assert isinstance(held, Held) == self.model.hold(run_id, amount)
        if isinstance(held, Held):
            assert held == credits.hold(self.person, run_id=run_id, amount=amount, ref=ref, now=self.now)
        return isinstance(held, Held)

    @rule(target=ended, run_id=consumes(runs), share=st.integers(0, 100))
    def a_run_is_answered(self, run_id: uuid.UUID, share: int) -> tuple[uuid.UUID, bool]:
        charge = credits.held_for(run_id) * share // 100
        settlement = credits.settle(self.person, run_id=run_id, lines=lines(charge), now=self.now)
        self.model.resolve(run_id, charge)
        assert (settlement.credits, settlement.daily + settlement.pack) == (charge, charge)
        assert settlement.balance_after == self.model.daily + self.model.pack
        return run_id, True

    @rule(target=ended, run_id=consumes(runs))
    def a_run_fails(self, run_id: uuid.UUID) -> tuple[uuid.UUID, bool]:
        credits.release(self.person, run_id=run_id, now=self.now)
        self.model.resolve(run_id, 0)
        return run_id, False

    @rule(end=ended, as_settle=st.booleans())
    def an_ended_run_is_ended_again(self, end: tuple[uuid.UUID, bool], as_settle: bool) -> None:
        run_id, was_settled = end
        first = credits.settlement_of(self.person, run_id=run_id)
        if as_settle != was_settled:
            with pytest.raises(AlreadySettled if was_settled else AlreadyReleased):
                self.end(run_id, as_settle=as_settle)
        else:
            assert self.end(run_id, as_settle=as_settle) == first

    def end(self, run_id: uuid.UUID, *, as_settle: bool) -> Settlement:
        if as_settle:
            return credits.settle(self.person, run_id=run_id, lines=lines(1), now=self.now)
        return credits.release(self.person, run_id=run_id, now=self.now)

    @invariant()
    def the_ledger_says_what_the_model_says(self) -> None:
        found = credits.balance_of(self.person, now=self.now)
        assert (found.daily, found.pack, found.held) == (self.model.daily, self.model.pack, self.model.held())
        (limit,) = credits.limits_of(self.person, now=self.now)
        assert (limit.used, limit.max) == (self.model.granted - self.model.daily, 50)
        before, after = limit.resets_at.astimezone(UTC) - timedelta(seconds=1), limit.resets_at
        zone = self.person.zone
        assert before.astimezone(zone).date() <= self.model.day < after.date()

    def teardown(self) -> None:
        rows = credits.entries_of(self.person, limit=1000)
        assert sum(row.spent for row in rows) == self.model.spent
        assert sum(row.expired for row in rows) == self.model.expired
        assert audit.violations() == []


def lines(charge: int) -> list[Line]:
    return [Line("tool", None, 1, charge, charge)]


Ledger.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
TestLedgerAgainstItsModel = pytest.mark.scenario(Ledger.TestCase)
