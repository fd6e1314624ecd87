"""A plan counts from when Stripe has said so until what was paid for ends, and gives no more than its limits."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from billing import credits, past_due, shop, subscriptions
from billing.credits import Held, Shortfall
from billing.errors import NotOffered, NotSubscribed
from billing.models import Plan, Subscription
from billing.plans import LATE, plan_of
from billing.pricing import Line
from billing.stripe_objects import SubscriptionFacts
from klerai.accounts.models import Person
from klerai.models import OutgoingMail
from tests.credit_people import NOON, verified
from tests.fakes.stripe_server import StripeFake
from tests.people import make_charlie
from tests.selling import Buyer

MONTH = timedelta(days=30)


def subscribed(
    person: Person,
    *,
    start: datetime = NOON,
    status: str = "active",
    now: datetime | None = None,
    cancels_at: datetime | None = None,
    paid_until: datetime | None = None,
    ended_at: datetime | None = None,
    id: str = "",
) -> Subscription:
    """As if Stripe had just said so."""
    facts = SubscriptionFacts(
        id=id or f"sub_{person.pk.hex}",
        customer=f"cus_{person.pk.hex}",
        status=status,
        price_ids=("price_pro",),
        item="si_1",
        reference="",
        started_at=start,
        period_start=start,
        period_end=start + MONTH,
        paid_until=paid_until or start + MONTH,
        cancels_at=cancels_at,
        ended_at=ended_at,
        unpaid_since=start if status in ("past_due", "unpaid") else None,
        livemode=False,
    )
    subscriptions.write(person.pk, facts, now=now or start)
    return Subscription.objects.get(pk=facts.id)


def spend(person: Person, amount: int, *, now: datetime) -> None:
    run_id = uuid.uuid4()
    assert isinstance(credits.hold(person, run_id=run_id, amount=amount, now=now), Held)
    credits.settle(person, run_id=run_id, lines=[Line("tool", None, 1, amount, amount)], now=now)


def daily(person: Person, *, now: datetime) -> int:
    return credits.balance_of(person, now=now).daily


@pytest.fixture(autouse=True)
def _selling(stripe_fake: StripeFake, settings: Settings) -> None:
    """Pro is known by its price, and mail waits in the database."""
    settings.EMAIL_BACKEND = "klerai.mail_queue.QueuedBackend"


def test_an_upgrade_tops_the_day_up_to_what_the_plan_gives() -> None:
    person = verified()
    spend(person, 30, now=NOON)
    subscribed(person)
    assert daily(person, now=NOON) == 120
    subscribed(person, now=NOON + timedelta(hours=1))
    assert daily(person, now=NOON + timedelta(hours=1)) == 120
    assert daily(person, now=NOON + timedelta(days=1)) == 150


def test_a_plan_that_ends_leaves_the_day_as_it_is_and_the_next_one_is_of_free() -> None:
    person = verified()
    subscribed(person)
    spend(person, 20, now=NOON)
    end = NOON + MONTH
    subscribed(person, cancels_at=end, now=NOON + timedelta(days=2))
    assert daily(person, now=end - timedelta(seconds=1)) == 150
    assert (plan_of(person, now=end).name, daily(person, now=end)) == ("free", 150)
    (limit,) = credits.limits_of(person, now=end)
    assert (limit.used, limit.max) == (0, 150)
    assert daily(person, now=end + timedelta(days=1)) == 50


def test_going_to_and_fro_in_one_day_never_gives_more_than_the_better_plans_day() -> None:
    person = verified()
    given = 0
    for hour in range(6):
        now = NOON + timedelta(hours=hour)
        subscribed(person, start=NOON + timedelta(minutes=hour), now=now, ended_at=now if hour % 2 else None)
        given += daily(person, now=now)
        credits.release(person, run_id=hold(person, 1, now=now), now=now)
    grants = sum(row.daily for row in credits.entries_of(person, credits.Wanted(kinds=["grant"]), limit=100))
    assert grants == 150


def hold(person: Person, amount: int, *, now: datetime) -> uuid.UUID:
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=amount, now=now)
    return run_id


def test_a_period_gives_no_more_than_the_plan_allows_and_says_which_limit_binds() -> None:
    person = verified()
    subscribed(person)
    for day in range(20):
        spend(person, 149 if day == 0 else 150, now=NOON + timedelta(days=day))
    now = NOON + timedelta(days=20)
    assert daily(person, now=now) == 1
    day, period = credits.limits_of(person, now=now)
    assert ((day.used, day.max), (period.used, period.max)) == ((0, 150), (2_999, 3_000))
    assert period.resets_at == NOON + MONTH
    refused = credits.hold(person, run_id=uuid.uuid4(), amount=5, now=now)
    assert isinstance(refused, Shortfall)
    assert (refused.limit.name, refused.limit.resets_at) == ("period", NOON + MONTH)
    assert daily(person, now=NOON + timedelta(days=21)) == 1


def test_the_day_binds_where_the_period_still_has_enough() -> None:
    person = verified()
    subscribed(person)
    spend(person, 150, now=NOON)
    refused = credits.hold(person, run_id=uuid.uuid4(), amount=5, now=NOON)
    assert isinstance(refused, Shortfall)
    assert (refused.limit.name, refused.limit.used, refused.limit.max) == ("daily", 150, 150)


def test_a_new_period_in_the_middle_of_a_day_tops_that_day_up() -> None:
    person = verified()
    subscribed(person)
    for day in range(20):
        spend(person, 148, now=NOON + timedelta(days=day))
    late = NOON + timedelta(days=20)
    spend(person, 40, now=late)  # 3,000 of 3,000
    assert daily(person, now=late) == 0
    renewed = NOON + MONTH
    morning = renewed - timedelta(hours=1)
    assert daily(person, now=morning) == 0
    subscribed(person, start=renewed)
    assert daily(person, now=renewed) == 150
    _, period = credits.limits_of(person, now=renewed)
    assert period.used == 0


def test_what_is_held_counts_in_the_period_until_it_comes_back() -> None:
    person = verified()
    subscribed(person)
    run_id = hold(person, 100, now=NOON)
    _, period = credits.limits_of(person, now=NOON)
    assert period.used == 100
    credits.release(person, run_id=run_id, now=NOON)
    _, period = credits.limits_of(person, now=NOON)
    assert period.used == 0


def test_packs_are_not_counted_in_the_period() -> None:
    person = verified()
    credits.grant(person, amount=500, reason="A pack", now=NOON)
    subscribed(person)
    spend(person, 400, now=NOON)
    _, period = credits.limits_of(person, now=NOON)
    assert period.used == 150


def test_what_was_spent_before_the_period_began_is_not_counted_however_late_the_news() -> None:
    person = verified()
    spend(person, 50, now=NOON)
    start = NOON + timedelta(hours=1)
    credits.grant(person, amount=10, reason="A pack", now=start)
    spend(person, 10, now=start)
    subscribed(person, start=start, now=start + timedelta(hours=3))
    _, period = credits.limits_of(person, now=start + timedelta(hours=3))
    assert period.used == 0


@pytest.mark.parametrize(
    ("status", "until"),
    [
        ("active", NOON + MONTH + LATE),
        ("trialing", NOON + MONTH + LATE),
        ("past_due", NOON + timedelta(days=5)),
        ("incomplete", NOON),
        ("incomplete_expired", NOON),
        ("unpaid", NOON),
        ("canceled", NOON),
        ("paused", NOON),
        ("something_new", NOON),
    ],
)
def test_how_long_a_subscription_entitles(status: str, until: datetime) -> None:
    person = verified()
    subscribed(person, status=status, paid_until=NOON + timedelta(days=5))
    assert plan_of(person, now=until - timedelta(seconds=1)).name == ("pro" if until > NOON else "free")
    assert plan_of(person, now=until).name == "free"


def test_an_ended_subscription_entitles_to_nothing_at_once_whatever_its_status() -> None:
    person = verified()
    subscribed(person, ended_at=NOON + timedelta(days=1), status="active")
    assert plan_of(person, now=NOON).name == "free"


def test_news_of_a_renewal_may_be_a_day_late() -> None:
    person = verified()
    subscribed(person)
    late = NOON + MONTH + timedelta(hours=20)
    assert daily(person, now=late) == 150
    subscribed(person, start=NOON + MONTH, now=late)
    assert plan_of(person, now=late).name == "pro"


def test_holding_and_settling_ask_no_more_of_the_database_than_on_free() -> None:
    asked_of: list[list[str]] = []
    for is_pro in (False, True):
        person = verified()
        if is_pro:
            subscribed(person)
        daily(person, now=NOON)
        with CaptureQueriesContext(connection) as asked:
            spend(person, 5, now=NOON)
        asked_of.append([query["sql"].split("(")[0] for query in asked])
    assert asked_of[0] == asked_of[1]
    assert not any("billing_subscription" in sql or "billing_plan" in sql for sql in asked_of[1])


def test_the_credits_of_a_stranger_do_not_change() -> None:
    alice, charlie = verified(), make_charlie()
    before = credits.limits_of(charlie)
    subscribed(alice)
    assert plan_of(charlie).name == "free"
    assert [(limit.used, limit.max) for limit in credits.limits_of(charlie)] == [
        (limit.used, limit.max) for limit in before
    ]


def mails(person: Person) -> list[str]:
    waiting = OutgoingMail.objects.filter(message__to=[person.email]).order_by("created_at")
    return [mail.message["subject"] for mail in waiting]


def test_a_failing_card_is_said_on_the_page_and_in_three_mails_once_each(stripe_fake: StripeFake) -> None:
    alice, charlie = Buyer(stripe_fake), make_charlie()
    subscription_id = alice.buy(plan="pro")["subscription"]
    assert shop.banner_for(alice.person) is None
    stripe_fake.world.renew(subscription_id, is_paid=False)
    alice.hear()
    banner = shop.banner_for(alice.person)
    assert banner is not None
    assert "payment failed" in banner.text
    assert banner.url == "/billing/portal/"
    assert shop.banner_for(charlie) is None
    assert (alice.get("/api/billing")["status"], mails(alice.person)) == ("past_due", ["Your payment for Pro failed"])
    since = alice.subscription.unpaid_since
    assert since is not None
    for moment in (since + timedelta(days=2, hours=23), since + timedelta(days=3), since + timedelta(days=9)):
        past_due.notify_all(now=moment)
    assert mails(alice.person)[1:] == ["Your payment for Pro is still open"]
    stripe_fake.world.end(subscription_id)
    alice.hear()
    assert mails(alice.person)[2:] == ["Pro has ended: the payment never arrived"]
    assert shop.banner_for(alice.person) is None
    body = OutgoingMail.objects.filter(message__to=[alice.person.email]).latest("created_at").message["body"]
    assert "/billing/portal/" in body


def test_a_card_that_works_again_ends_the_warnings(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    subscription_id = alice.buy(plan="pro")["subscription"]
    stripe_fake.world.renew(subscription_id, is_paid=False)
    alice.hear()
    stripe_fake.world.recover(subscription_id)
    alice.hear()
    assert (alice.subscription.status, shop.banner_for(alice.person)) == ("active", None)
    past_due.notify_all(now=datetime.now(UTC) + timedelta(days=9))
    stripe_fake.world.end(subscription_id)
    alice.hear()
    assert mails(alice.person) == ["Your payment for Pro failed"]


def test_past_due_keeps_pro_for_as_long_as_was_paid(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    subscription_id = alice.buy(plan="pro")["subscription"]
    paid_until = alice.subscription.period_end
    stripe_fake.world.renew(subscription_id, is_paid=False)
    alice.hear()
    assert alice.subscription.paid_until == paid_until
    assert plan_of(alice.person, now=paid_until - timedelta(seconds=1)).name == "pro"
    assert plan_of(alice.person, now=paid_until).name == "free"


def test_cancelling_keeps_pro_to_the_end_of_the_period_and_can_be_taken_back(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.buy(plan="pro")
    ends = shop.cancel_at_period_end(alice.person)
    assert (ends.cancels_at, alice.plan) == (ends.period_end, "pro")
    assert plan_of(alice.person, now=ends.period_end).name == "free"
    assert shop.cancel_at_period_end(alice.person, wanted=False).cancels_at is None
    assert shop.change_plan(alice.person, plan="free").cancels_at is not None
    with pytest.raises(NotSubscribed):
        shop.cancel_at_period_end(make_charlie())


def test_a_dearer_plan_counts_at_once_and_a_cheaper_one_is_left_to_the_portal(stripe_fake: StripeFake) -> None:
    team = Plan.objects.create(
        name=f"team-{uuid.uuid4().hex[:8]}", title="Team", daily_credits=400, period_credits=9_000
    )
    price_id = f"price_{team.name}"
    stripe_fake.world.add_price(price_id, 5_900, interval="month")
    team.prices.create(cents=5_900, stripe_price_id=price_id, starts_on=NOON.date())
    alice = Buyer(stripe_fake)
    try:
        alice.buy(plan="pro")
        assert alice.balance.daily == 150
        shop.change_plan(alice.person, plan=team.name)
        assert (alice.plan, alice.balance.daily) == (team.name, 400)
        with pytest.raises(NotOffered):
            shop.change_plan(alice.person, plan="pro")
    finally:
        Plan.objects.filter(pk=team.pk).update(is_offered=False)


def test_a_price_that_begins_later_is_not_asked_for_and_an_old_one_is_still_understood(stripe_fake: StripeFake) -> None:
    pack = Plan.objects.get(pk="pro")
    alice = Buyer(stripe_fake)
    session_id = alice.begin(plan="pro")
    later = pack.prices.create(
        cents=2_500, stripe_price_id=f"price_{uuid.uuid4().hex}", starts_on=datetime.now(UTC).date() + timedelta(days=9)
    )
    try:
        assert next(offer for offer in shop.plans_offered() if offer.name == "pro").cents == 1_900
        later.starts_on = datetime.now(UTC).date()
        later.save()
        assert next(offer for offer in shop.plans_offered() if offer.name == "pro").cents == 2_500
        stripe_fake.world.pay(session_id)
        alice.hear()
        assert alice.plan == "pro"
    finally:
        later.delete()
