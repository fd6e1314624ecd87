"""BW1 and BW2: announcements in any order, any number of times, from many senders: the books as in order and once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from billing import inbox
from billing.plans import plan_of
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_server import StripeFake
from tests.fakes.stripe_world import World
from tests.harness.books import books, grants_by_payment
from tests.harness.scenario import Scenario
from tests.people import make_unverified
from tests.selling import Buyer, announce, work_off

SENDERS, TIMES = 8, 3
EVENTS_EACH = 10  # at least, in one customer's story below
Step = Callable[[Buyer, dict[str, str]], None]


@pytest.fixture(autouse=True)
def _at_one_moment(stripe_fake: StripeFake) -> Iterator[None]:
    """So that what happens to two people happens to both at the same time."""
    stripe_fake.world.stopped_at = int(datetime.now(UTC).timestamp())
    yield
    stripe_fake.world.stopped_at = None


@pytest.mark.thorough
@pytest.mark.scenario("BW1")
def test_shuffled_and_repeated_announcements_end_in_the_same_books(scenario: Scenario, stripe_fake: StripeFake) -> None:
    count = scenario.size(full=1_000, normal=120, quick=60) // EVENTS_EACH
    pairs = [(Buyer(stripe_fake, make_unverified()), Buyer(stripe_fake, make_unverified())) for _ in range(count)]
    shuffled: list[Thing] = []
    in_order = 0
    for ordered, other in pairs:
        story = _story(scenario.random)
        known: tuple[dict[str, str], dict[str, str]] = ({}, {})
        for step in story:
            step(ordered, known[0])
            in_order += len(ordered.hear())
            step(other, known[1])
            shuffled += other.news()
    sent = shuffled * TIMES
    scenario.random.shuffle(sent)
    refused = _send_from_everywhere(stripe_fake, sent)

    now = datetime.now(UTC)
    differing = [(books(a.person, now=now), books(b.person, now=now)) for a, b in pairs]
    grants = [times for _, buyer in pairs for times in grants_by_payment(buyer.person).values()]
    scenario.figures = {
        "customers": len(pairs),
        "events": len(shuffled),
        "deliveries": len(sent),
        "payments": len(grants),
        "grants_per_payment": max(grants, default=0),
    }
    assert in_order == len(shuffled)
    scenario.must_be_zero(
        refused=refused,
        diff_rows=sum(one != other for one, other in differing),
        granted_otherwise_than_once=sum(times != 1 for times in grants),
    )


def _send_from_everywhere(fake: StripeFake, events: Sequence[Thing]) -> int:
    """Eight senders at once, each with its share; whatever was taken is worked off at once by whoever sent it."""

    def send(share: Sequence[Thing]) -> int:
        client, refused = Client(), 0
        try:
            for event in share:
                refused += announce(fake, event, client=client) != 200
                inbox.apply(event["id"])
        finally:
            connection.close()
        return refused

    with ThreadPoolExecutor(SENDERS) as pool:
        return sum(pool.map(send, [events[number::SENDERS] for number in range(SENDERS)]))


def _story(dice: random.Random) -> list[Step]:
    """What happens to one customer: a pack or two with what may go back, and a subscription with its months."""
    story: list[Step] = [_buys("pack", "500"), _buys("plan", "pro"), _buys("pack", "1500")]
    story += dice.choice([[_refund("500", 700), _refund("500", 700)], [_dispute("500"), _decide("won")], []])
    story += dice.choice([[_refund("1500", 5_400)], [_dispute("1500"), _decide("lost")], [_failing_refund("1500")]])
    story += [_renew(is_paid=True)] * dice.randint(0, 2)
    story += dice.choice(
        [
            [_renew(is_paid=False), _recover],
            [_renew(is_paid=False), _end],
            [_cancel, _renew(is_paid=True)],
            [_cancel],
            [],
        ]
    )
    return story


def _buys(kind: str, name: str) -> Step:
    def step(buyer: Buyer, known: dict[str, str]) -> None:
        session = buyer.fake.world.pay(buyer.begin(**{kind: name}))
        known[name] = session["payment_intent"] or session["subscription"]

    return step


def _refund(pack: str, cents: int) -> Step:
    def step(buyer: Buyer, known: dict[str, str]) -> None:
        buyer.fake.world.late_seconds += 1  # one after the other
        buyer.fake.world.refund(known[pack], cents)
        buyer.fake.world.late_seconds -= 1

    return step


def _failing_refund(pack: str) -> Step:
    def step(buyer: Buyer, known: dict[str, str]) -> None:
        refund = buyer.fake.world.refund(known[pack], 5_400, status="pending")
        buyer.fake.world.fail_refund(refund["id"])

    return step


def _dispute(pack: str) -> Step:
    def step(buyer: Buyer, known: dict[str, str]) -> None:
        known["dispute"] = buyer.fake.world.dispute(known[pack])["id"]

    return step


def _decide(status: str) -> Step:
    return lambda buyer, known: buyer.fake.world.close_dispute(known["dispute"], status=status)


def _renew(*, is_paid: bool) -> Step:
    return lambda buyer, known: buyer.fake.world.renew(known["pro"], is_paid=is_paid)


def _recover(buyer: Buyer, known: dict[str, str]) -> None:
    buyer.fake.world.recover(known["pro"])


def _end(buyer: Buyer, known: dict[str, str]) -> None:
    buyer.fake.world.end(known["pro"])


def _cancel(buyer: Buyer, known: dict[str, str]) -> None:
    buyer.fake.world.update(known["pro"], cancel_at_period_end=True)


@dataclass(frozen=True, slots=True)
class Life:
    """A lifecycle of five announcements: what is bought, what happens then, and which announcements are sent."""

    name: str
    wanted: dict[str, Any]
    then: Callable[[World, Thing], None]
    types: tuple[str, ...]
    is_late: bool = False


def _month(world: World, session: Thing) -> None:
    world.renew(session["subscription"])


def _goodbye(world: World, session: Thing) -> None:
    world.update(session["subscription"], cancel_at_period_end=True)
    world.renew(session["subscription"])


def _no_money(world: World, session: Thing) -> None:
    world.renew(session["subscription"], is_paid=False)
    world.end(session["subscription"])


def _money_back(world: World, session: Thing) -> None:
    world.refund(session["payment_intent"], 1_500)
    world.late_seconds += 1
    world.refund(session["payment_intent"], 500)
    world.late_seconds -= 1


def _late_and_disputed(world: World, session: Thing) -> None:
    world.settle(session["id"], arrives=True)
    world.close_dispute(world.dispute(session["payment_intent"])["id"], status="won")


CREATED, COMPLETED = "customer.subscription.created", "checkout.session.completed"
UPDATED, DELETED = "customer.subscription.updated", "customer.subscription.deleted"
LIVES = (
    Life("a month later", {"plan": "pro"}, _month, (CREATED, COMPLETED, "invoice.paid", UPDATED)),
    Life("cancelled", {"plan": "pro"}, _goodbye, (CREATED, COMPLETED, "invoice.paid", UPDATED, DELETED)),
    Life("unpaid", {"plan": "pro"}, _no_money, (CREATED, COMPLETED, "invoice.payment_failed", UPDATED, DELETED)),
    Life(
        "refunded",
        {"pack": "500"},
        _money_back,
        (COMPLETED, "payment_intent.succeeded", "refund.created", "charge.succeeded"),
    ),
    Life(
        "disputed",
        {"pack": "500"},
        _late_and_disputed,
        (
            COMPLETED,
            "checkout.session.async_payment_succeeded",
            "payment_intent.succeeded",
            "charge.dispute.created",
            "charge.dispute.closed",
        ),
        is_late=True,
    ),
)


@pytest.mark.thorough
@pytest.mark.scenario("BW2")
def test_every_order_of_a_lifecycle_ends_in_the_same_books(scenario: Scenario, stripe_fake: StripeFake) -> None:
    each = scenario.size(full=120, normal=24, quick=3)
    kept = wrong = entitled = stuck = 0
    for life in LIVES:
        orders = list(permutations(range(5)))
        reference = _lived(stripe_fake, life, range(5))
        for order in scenario.random.sample(orders, each):
            end = _lived(stripe_fake, life, order)
            kept += 1
            wrong += end.books != reference.books
            entitled += end.was_entitled_after_its_end
            stuck += '"incomplete"' in end.books
    scenario.n = kept
    scenario.figures = {"lifecycles": len(LIVES), "orders": kept}
    scenario.must_be_zero(wrong=wrong, entitled_after_deleted=entitled, stuck_incomplete=stuck)


@dataclass(frozen=True, slots=True)
class End:
    books: str
    was_entitled_after_its_end: bool


def _lived(fake: StripeFake, life: Life, order: Sequence[int]) -> End:
    """One life, announced in that order, each announcement worked off before the next one comes."""
    buyer = Buyer(fake, make_unverified())
    session = fake.world.pay(buyer.begin(**life.wanted), is_late=life.is_late)
    life.then(fake.world, session)
    events = [event for event in buyer.news() if event["type"] in life.types]
    assert len(events) == 5, [event["type"] for event in events]
    was_entitled = False
    now = datetime.now(UTC) + timedelta(minutes=1)
    for place in order:
        assert announce(fake, events[place]) == 200
        work_off([events[place]])
        has_ended = session["subscription"] and fake.world.get(session["subscription"])["ended_at"]
        was_entitled = was_entitled or (bool(has_ended) and plan_of(buyer.person, now=now).name != "free")
    return End(books(buyer.person, now=now), was_entitled)
