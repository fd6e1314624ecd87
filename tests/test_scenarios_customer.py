"""One customer's way, from signing up to Free again, with every announcement late, twice and out of order."""

from __future__ import annotations

import uuid

import pytest

from billing import audit, credits
from billing.credits import Held, Shortfall
from billing.pricing import Line
from tests.fakes.stripe_server import StripeFake
from tests.harness.scenario import Scenario
from tests.selling import Buyer, announce, work_off


def spend_all(buyer: Buyer, *, each: int = 5) -> int:
    """Plain questions until the next one is refused; how many were answered."""
    answered = 0
    while isinstance(credits.hold(buyer.person, run_id=(run_id := uuid.uuid4()), amount=each), Held):
        credits.settle(buyer.person, run_id=run_id, lines=[Line("base", None, 1, each, each)])
        answered += 1
    return answered


@pytest.mark.scenario("BW")
def test_from_free_by_a_pack_and_pro_to_free_again(scenario: Scenario, stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    world, sent = stripe_fake.world, 0

    def hear_badly() -> None:
        nonlocal sent
        events = alice.news() * 2
        scenario.random.shuffle(events)
        for event in events:
            assert announce(stripe_fake, event) == 200
            work_off([event])
            sent += 1

    assert (alice.plan, alice.balance.available) == ("free", 50)
    assert spend_all(alice) == 10
    refused = credits.hold(alice.person, run_id=uuid.uuid4(), amount=5)
    assert isinstance(refused, Shortfall)
    assert (refused.limit.name, refused.limit.used, refused.limit.max) == ("daily", 50, 50)

    world.pay(alice.begin(pack="500"))
    hear_badly()
    assert (alice.balance.daily, alice.balance.pack) == (0, 500)
    run_id = uuid.uuid4()
    credits.hold(alice.person, run_id=run_id, amount=25)
    credits.settle(alice.person, run_id=run_id, lines=[Line("base", None, 1, 5, 5)])
    assert alice.balance.pack == 495

    subscription_id = world.pay(alice.begin(plan="pro"))["subscription"]
    hear_badly()
    assert (alice.plan, alice.balance.daily, alice.balance.pack) == ("pro", 100, 495)
    world.update(subscription_id, cancel_at_period_end=True)  # in the portal
    hear_badly()
    assert (alice.plan, alice.get("/api/billing")["status"]) == ("pro", "active")
    world.renew(subscription_id)
    hear_badly()
    assert (alice.plan, alice.balance.daily, alice.balance.pack) == ("free", 100, 495)

    told = [
        (row["kind"], row["daily"] + row["pack"], row["reason"]) for row in alice.get("/api/billing/ledger")["results"]
    ]
    assert [line for line in told if line[0] == "grant"][:2] == [
        ("grant", 100, told[0][2]),
        ("grant", 500, "Pack of 500 credits"),
    ]
    scenario.figures = {"announcements": sent, "ledger_rows": len(told)}
    scenario.must_be_zero(violations=sum(str(alice.person.pk) in violation.what for violation in audit.violations()))
