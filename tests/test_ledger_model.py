"""The ledger against a small model of it, under random questions, clocks and journeys (BM6)."""

from __future__ import annotations

import os
import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Self
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from billing import audit, credits, payments, subscriptions
from billing.credits import Held, Settlement
from billing.errors import AlreadyReleased, AlreadySettled
from billing.models import Order, Plan, Price
from billing.pricing import Line
from billing.stripe_objects import PaymentFacts, ReversalFacts, SessionFacts, SubscriptionFacts
from klerai.accounts.models import Person
from tests.credit_people import newcomer
from tests.fakes.stripe_server import StripeFake

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
EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "50" if os.environ.get("KLERAI_THOROUGH") == "1" else "10"))


PLANS = {"free": (50, None), "pro": (150, 3_000), "tight": (60, 100)}  # a period that random days do use up
MONTH = timedelta(days=30)


@dataclass
class Sub:
    """A subscription as Stripe said it last."""

    id: str
    plan: str
    status: str
    start: datetime
    cancels: bool = False

    def until(self) -> datetime | None:
        """How long it entitles."""
        end = self.start + MONTH
        match self.status:
            case "active":
                return end if self.cancels else end + timedelta(days=1)
            case "past_due":
                return self.start
        return None


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
    sub: Sub | None = None
    has_news: bool = True
    known_until: datetime | None = None
    daily_spent: list[tuple[datetime, int]] = field(default_factory=list)
    spent_before: int = 0
    pack_spent: int = 0
    packs: list[list[int]] = field(default_factory=list)  # what each brought and what was taken back, in their order

    def plan(self, now: datetime) -> str:
        until = self.sub.until() if self.sub else None
        return self.sub.plan if self.sub and until is not None and now < until else "free"

    def used(self) -> int:
        """Of the period: spent since it began, or held."""
        spent = sum(amount for _, amount in self.daily_spent) - self.spent_before
        return spent + sum(daily for holds in self.runs.values() for _, daily, _ in holds)

    def hear(self, sub: Sub, *, is_new_period: bool) -> None:
        """What was spent before a period is settled when it is first heard of."""
        self.sub, self.has_news = sub, True
        if is_new_period:
            self.spent_before = sum(amount for at, amount in self.daily_spent if at < sub.start)

    def open(self, today: date, *, is_verified: bool, now: datetime) -> None:
        if today > self.day:
            self.expired += self.daily
            self.day, self.daily, self.granted, self.has_news = today, 0, 0, True
        has_ended = self.known_until is not None and now >= self.known_until
        if today < self.day or not is_verified or not (self.has_news or has_ended):
            return
        plan = self.plan(now)
        per_day, per_period = PLANS[plan]
        due = per_day - self.granted
        if per_period is not None:
            due = min(due, per_period - self.used() - self.daily)
        self.daily += max(0, due)
        self.granted += max(0, due)
        self.has_news, self.known_until = False, self.sub.until() if self.sub and plan != "free" else None

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

    def resolve(self, run_id: uuid.UUID, charge: int, *, now: datetime) -> None:
        """Pay one credit at a time: the oldest daily ones first, then packs; give back what is left."""
        holds = self.runs.pop(run_id)
        self.spent += charge
        for day, daily, _ in sorted(holds):
            paid = min(daily, charge)
            charge -= paid
            self.daily_spent.append((now, paid))
            if day == self.day:
                self.daily += daily - paid
            else:
                self.expired += daily - paid
        self.pack += sum(pack for *_, pack in holds) - charge
        self.pack_spent += charge

    def refund(self, place: int, most: int) -> int:
        """Take back what of a pack is left when those before it are spent first."""
        gone = self.pack_spent + sum(pack for holds in self.runs.values() for *_, pack in holds)
        for brought, taken in self.packs[:place]:
            gone = max(0, gone - (brought - taken))
        brought, taken = self.packs[place]
        back = max(0, min(most, brought - taken - gone))
        self.packs[place][1] += back
        self.pack -= back
        return back


class Ledger(RuleBasedStateMachine):
    runs = Bundle("runs")
    ended = Bundle("ended")

    @initialize(
        start=st.sampled_from(STARTS),
        zone=st.sampled_from(ZONES),
        pack=st.integers(1, 60),
        paid=st.sampled_from(["pro", "tight"]),
    )
    def arrive(self, start: datetime, zone: str, pack: int, paid: str) -> None:
        self.paid = paid
        self.person, self.model, self.now = newcomer(zone=zone), Model(), start
        self.person.email_verified_at = start
        self.person.save()
        self.bought: list[Bought] = []
        self.open()
        self.a_pack_is_granted(pack)

    def open(self) -> None:
        today = self.now.astimezone(ZoneInfo(self.person.time_zone)).date()
        self.model.open(today, is_verified=self.person.is_verified, now=self.now)

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
                limit, *_ = credits.limits_of(self.person, now=self.now)
                self.now = limit.resets_at.astimezone(UTC) - timedelta(seconds=1)
        self.person.save()  # news of Stripe finds them in the database
        self.open()

    @rule(amount=st.integers(1, 60))
    def a_pack_is_granted(self, amount: int) -> None:
        credits.grant(self.person, amount=amount, reason="A pack", now=self.now)
        self.model.pack += amount
        self.model.packs.append([amount, 0])

    @rule(amount=st.integers(1, 60))
    def a_pack_is_bought(self, amount: int) -> None:
        self.bought.append(Bought.by(self.person, amount, place=len(self.model.packs)))
        self.bought[-1].write(now=self.now)
        self.model.pack += amount
        self.model.packs.append([amount, 0])

    @precondition(lambda self: any(not bought.reversals for bought in self.bought))
    @rule(dice=st.randoms(use_true_random=False), share=st.integers(1, 100))
    def money_goes_back(self, dice: random.Random, share: int) -> None:
        bought = dice.choice([bought for bought in self.bought if not bought.reversals])
        bought.refund(share)
        for _ in range(2):  # heard of twice
            bought.write(now=self.now)
        self.model.refund(bought.place, bought.credits * share // 100)

    @rule(news=st.sampled_from(["subscribed", "renewed", "failed", "recovered", "cancelled", "kept", "ended"]))
    def stripe_says(self, news: str) -> None:
        sub = self.model.sub
        before = sub and (sub.id, sub.start)
        if sub is None or sub.status == "canceled":
            sub = Sub(f"sub_{uuid.uuid4().hex}", self.paid, "active", self.now)
        if news in ("renewed", "failed"):
            self.now = max(self.now, sub.start + MONTH)
        match news:
            case "renewed":
                sub.start += MONTH
            case "failed":
                sub.start, sub.status = sub.start + MONTH, "past_due"
            case "recovered":
                sub.status = "active"
            case "cancelled" | "kept":
                sub.cancels = news == "cancelled"
            case "ended":
                sub.status = "canceled"
        self.model.hear(sub, is_new_period=before != (sub.id, sub.start))
        subscriptions.write(self.person.pk, as_facts(sub, now=self.now), now=self.now)
        self.open()

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
        self.model.resolve(run_id, charge, now=self.now)
        assert (settlement.credits, settlement.daily + settlement.pack) == (charge, charge)
        assert settlement.balance_after == self.model.daily + self.model.pack
        return run_id, True

    @rule(target=ended, run_id=consumes(runs))
    def a_run_fails(self, run_id: uuid.UUID) -> tuple[uuid.UUID, bool]:
        credits.release(self.person, run_id=run_id, now=self.now)
        self.model.resolve(run_id, 0, now=self.now)
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
        limit, *others = credits.limits_of(self.person, now=self.now)
        most = max(self.model.granted, PLANS[self.model.plan(self.now)][0])
        assert (limit.used, limit.max) == (self.model.granted - self.model.daily, most)
        for period in others:
            assert (period.used, period.max) == (self.model.used(), PLANS[self.paid][1])
        assert bool(others) == (self.model.plan(self.now) != "free")
        before, after = limit.resets_at.astimezone(UTC) - timedelta(seconds=1), limit.resets_at
        zone = self.person.zone
        assert before.astimezone(zone).date() <= self.model.day < after.date()

    def teardown(self) -> None:
        rows = credits.entries_of(self.person, limit=1000)
        assert sum(row.spent for row in rows) == self.model.spent
        assert sum(row.expired for row in rows) == self.model.expired
        assert audit.violations() == []


@pytest.fixture
def tight_plan(stripe_fake: StripeFake) -> None:
    """A plan that is not offered to anybody else."""
    daily, period = PLANS["tight"]
    made = {"title": "Tight", "daily_credits": daily, "period_credits": period, "is_offered": False}
    plan, _ = Plan.objects.get_or_create(name="tight", defaults=made)
    plan.prices.get_or_create(stripe_price_id="price_tight", defaults={"cents": 100, "starts_on": STARTS[0].date()})


@dataclass
class Bought:
    """A pack that was paid for, and the money that went back."""

    order: Order
    credits: int
    place: int
    reversals: tuple[ReversalFacts, ...] = ()

    @classmethod
    def by(cls, person: Person, credits: int, *, place: int) -> Self:
        price = Price.objects.filter(pack_id="500").latest("starts_on")
        order = Order.objects.create(person_id=person.pk, price=price, credits=credits, return_url="/")
        return cls(order, credits, place)

    def refund(self, share: int) -> None:
        self.reversals = (ReversalFacts(f"re_{uuid.uuid4().hex}", "refund", share, 1, True, False),)

    def write(self, *, now: datetime) -> None:
        payment_id = f"pi_{self.order.pk.hex}"
        facts = PaymentFacts(payment_id, "cus_1", "succeeded", 100, "usd", now, False, "", self.reversals)
        session = SessionFacts("cs_1", "", "complete", "paid", "cus_1", "", "usd", 100, (), payment_id, "", "", False)
        payments.write(self.order, session, facts, now=now)


def as_facts(sub: Sub, *, now: datetime) -> SubscriptionFacts:
    price = Price.objects.filter(plan_id=sub.plan).exclude(stripe_price_id="").earliest("starts_on")
    end = sub.start + MONTH
    return SubscriptionFacts(
        id=sub.id,
        customer="cus_1",
        status=sub.status,
        price_ids=(price.stripe_price_id,),
        item="si_1",
        reference="",
        started_at=sub.start,
        period_start=sub.start,
        period_end=end,
        paid_until=sub.start if sub.status == "past_due" else end,
        cancels_at=end if sub.cancels else None,
        ended_at=now if sub.status == "canceled" else None,
        unpaid_since=None,
        livemode=False,
    )


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
TestLedgerAgainstItsModel = pytest.mark.scenario(pytest.mark.usefixtures("tight_plan")(Ledger.TestCase))
