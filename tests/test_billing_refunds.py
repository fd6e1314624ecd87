"""BW5: two subscriptions, two packs, and money that goes back: only unspent credits of that payment go with it."""

from __future__ import annotations

import uuid

import pytest

from billing import credits, shop
from billing.credits import Held
from billing.models import Order, Payment, Reversal, Subscription
from billing.pricing import Line
from billing.subscriptions import SECOND
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_server import StripeFake
from tests.people import make_charlie, make_unverified
from tests.selling import Buyer

pytestmark = pytest.mark.scenario


@pytest.fixture
def alice(stripe_fake: StripeFake) -> Buyer:
    """Without daily credits, so that what she spends comes from her packs."""
    return Buyer(stripe_fake, make_unverified())


def spend(buyer: Buyer, amount: int) -> None:
    run_id = uuid.uuid4()
    assert isinstance(credits.hold(buyer.person, run_id=run_id, amount=amount), Held)
    credits.settle(buyer.person, run_id=run_id, lines=[Line("tool", None, 1, amount, amount)])


def refund(buyer: Buyer, session: Thing, cents: int) -> None:
    buyer.fake.world.refund(session["payment_intent"], cents)
    buyer.hear()


def test_the_second_of_two_paid_subscriptions_is_cancelled_and_flagged(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    first, second = alice.begin(plan="pro"), alice.begin(plan="pro")
    begun = stripe_fake.world.pay(first)["subscription"]
    stripe_fake.world.late_seconds += 60
    doubled = stripe_fake.world.pay(second)["subscription"]
    alice.hear()
    kept, cancelled = Subscription.objects.get(pk=begun), Subscription.objects.get(pk=doubled)
    assert (kept.status, kept.problem) == ("active", "")
    assert (cancelled.status, cancelled.problem) == ("canceled", SECOND)
    assert stripe_fake.world.get(doubled)["status"] == "canceled"
    assert (alice.plan, alice.balance.daily) == ("pro", 150)
    assert shop.subscription_of(alice.person) == kept


def test_two_packs_are_two_grants(alice: Buyer) -> None:
    for bought in (500, 1_000):
        alice.buy(pack="500")
        assert alice.balance.pack == bought
    assert Payment.objects.filter(person_id=alice.person.pk).count() == 2


def test_a_whole_refund_takes_what_was_not_spent(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    spend(alice, 320)
    refund(alice, session, 2_000)
    assert alice.balance.pack == 0
    (row,) = credits.entries_of(alice.person, credits.Wanted(kinds=["revoke"]))
    assert (row.pack, row.reason) == (-180, "Refund of a pack")


def test_a_part_of_the_money_takes_that_part_of_the_credits(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    refund(alice, session, 667)
    assert alice.balance.pack == 500 - 166  # 166.75, rounded for the person
    refund(alice, session, 667)
    assert alice.balance.pack == 500 - 333
    refund(alice, session, 666)
    assert alice.balance.pack == 0


def test_a_part_is_capped_by_what_is_unspent_and_never_goes_below_zero(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    spend(alice, 400)
    refund(alice, session, 1_000)
    assert alice.balance.pack == 0
    refund(alice, session, 1_000)
    assert alice.balance.pack == 0
    taken = Reversal.objects.filter(payment__person_id=alice.person.pk).values_list("credits_taken", flat=True)
    assert sorted(taken) == [0, 100]


def test_the_credits_of_another_pack_stay(alice: Buyer) -> None:
    first = alice.buy(pack="500")
    spend(alice, 450)
    second = alice.buy(pack="1500")
    refund(alice, first, 2_000)
    assert alice.balance.pack == 1_500
    refund(alice, second, 5_400)
    assert alice.balance.pack == 0


def test_packs_are_spent_in_the_order_they_came_also_those_that_were_given(alice: Buyer) -> None:
    credits.grant(alice.person, amount=100, reason="For the trouble")
    session = alice.buy(pack="500")
    spend(alice, 60)
    refund(alice, session, 2_000)
    assert alice.balance.pack == 40


def test_what_is_held_is_not_taken(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    run_id = uuid.uuid4()
    credits.hold(alice.person, run_id=run_id, amount=25)
    refund(alice, session, 2_000)
    assert (alice.balance.pack, alice.balance.held) == (0, 25)
    credits.release(alice.person, run_id=run_id)
    assert alice.balance.pack == 25
    alice.fake.world.announce("charge.refunded", alice.fake.world.of_kind("charge")[0])
    alice.hear()
    assert alice.balance.pack == 25  # judged once


def test_a_refund_that_fails_gives_the_credits_back(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    made = alice.fake.world.refund(session["payment_intent"], 2_000, status="pending")
    alice.hear()
    assert alice.balance.pack == 0
    alice.fake.world.fail_refund(made["id"])
    alice.hear()
    assert alice.balance.pack == 500


@pytest.mark.parametrize(("status", "left"), [("won", 500), ("lost", 0)])
def test_a_dispute_takes_the_credits_and_one_that_is_won_gives_them_back(alice: Buyer, status: str, left: int) -> None:
    session = alice.buy(pack="500")
    made = alice.fake.world.dispute(session["payment_intent"])
    alice.hear()
    assert alice.balance.pack == 0
    for _ in range(2):
        alice.fake.world.close_dispute(made["id"], status=status)
        alice.hear()
        assert alice.balance.pack == left


def test_an_inquiry_takes_nothing(alice: Buyer) -> None:
    session = alice.buy(pack="500")
    made = alice.fake.world.dispute(session["payment_intent"], status="warning_needs_response")
    alice.hear()
    alice.fake.world.close_dispute(made["id"], status="warning_closed")
    alice.hear()
    assert alice.balance.pack == 500


def test_a_refund_heard_of_before_its_payment_is_granted_and_taken_back(alice: Buyer) -> None:
    session = alice.fake.world.pay(alice.begin(pack="500"))
    alice.fake.world.refund(session["payment_intent"], 2_000)
    events = [event for event in alice.fake.world.events[-12:] if event["type"] == "refund.created"]
    alice._seen = alice.fake.world.events.index(events[-1])
    alice.hear()
    assert alice.balance.pack == 0
    assert [row.kind for row in credits.entries_of(alice.person)] == ["revoke", "grant"]
    assert alice.order.state == Order.State.PAID


def test_the_refund_of_a_subscription_takes_no_pack(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.buy(pack="500")
    alice.buy(plan="pro")
    intent = stripe_fake.world.of_kind("payment_intent")[0]
    stripe_fake.world.refund(intent["id"], 1_900)
    alice.hear()
    assert (alice.balance.pack, alice.plan) == (500, "pro")


def test_a_refund_leaves_a_stranger_alone(alice: Buyer, stripe_fake: StripeFake) -> None:
    charlie = Buyer(stripe_fake, make_charlie())
    charlie.buy(pack="500")
    charlie._seen = len(stripe_fake.world.events)
    session = alice.buy(pack="500")
    refund(alice, session, 2_000)
    assert (alice.balance.pack, charlie.balance.pack) == (0, 500)
