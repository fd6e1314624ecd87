"""What was never announced, or never worked off, is found by the hourly look, and the look says what it found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from billing import reconciliation
from billing.errors import StripeUnavailable
from billing.models import Order, Reconciliation, StripeCustomer, StripeEvent
from billing.stripe_settings import StripeSettings
from billing.tasks import apply_stripe_event, reconcile_stripe
from chat.departure import leave
from tests.fakes.stripe_server import StripeFake, Trouble
from tests.selling import Buyer, announce, work_off


def reconcile() -> Reconciliation:
    found = reconciliation.reconcile()
    assert found is not None
    assert found.problem == ""
    return found


def test_a_purchase_that_was_never_announced_is_found(stripe_fake: StripeFake) -> None:
    alice, bob = Buyer(stripe_fake), Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    stripe_fake.world.pay(bob.begin(plan="pro"))
    found = reconcile()
    assert (alice.balance.pack, bob.plan) == (500, "pro")
    assert found.events_missed >= 2
    assert found.ended_at is not None


def test_a_purchase_announced_to_somebody_else_is_found_by_its_checkout(stripe_fake: StripeFake) -> None:
    alice, bob = Buyer(stripe_fake), Buyer(stripe_fake)
    session = stripe_fake.world.pay(alice.begin(pack="500"))
    stripe_fake.world.pay(bob.begin(plan="pro"))
    for event in stripe_fake.world.events:
        event["is_delivered"] = True
    found = reconcile()
    assert (alice.balance.pack, bob.plan, found.events_missed) == (500, "pro", 0)
    assert found.payments_corrected >= 1
    assert found.subscriptions_corrected >= 1
    stripe_fake.world.refund(session["payment_intent"], 2_000)
    for event in stripe_fake.world.events:
        event["is_delivered"] = True
    reconcile()
    assert alice.balance.pack == 0


def test_a_look_that_finds_nothing_changes_nothing(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    alice.buy(pack="500")
    alice.buy(plan="pro")
    reconcile()
    again = reconcile()
    assert (again.events_missed, again.subscriptions_corrected, again.payments_corrected) == (0, 0, 0)
    assert again.subscriptions_checked >= 1
    assert alice.balance.pack == 500


def test_stripe_being_away_is_written_down_and_the_next_look_goes_on(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    stripe_fake.troubles += [Trouble(500)] * 3
    found = reconciliation.reconcile()
    assert found is not None
    assert found.problem.startswith("StripeUnavailable")
    assert found.ended_at is not None
    reconcile()
    assert alice.balance.pack == 500


def test_work_that_failed_says_why_and_is_done_later(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.pay(alice.begin(pack="500"))
    events = [event for event in alice.news() if event["type"] == "checkout.session.completed"]
    assert announce(stripe_fake, events[0]) == 200
    stripe_fake.troubles += [Trouble(500)] * 3
    with pytest.raises(StripeUnavailable):
        apply_stripe_event(events[0]["id"])
    row = StripeEvent.objects.get(pk=events[0]["id"])
    assert (row.state, row.attempts) == (StripeEvent.State.FAILED, 1)
    assert row.note.startswith("StripeUnavailable")
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    StripeEvent.objects.filter(pk=row.pk).update(received_at=long_ago)
    reconcile_stripe(0)
    row.refresh_from_db()
    assert (row.state, alice.balance.pack) == (StripeEvent.State.APPLIED, 500)
    assert work_off(events)[0].attempts == row.attempts  # done is done


def test_an_order_that_expired_unheard_is_closed(stripe_fake: StripeFake) -> None:
    alice = Buyer(stripe_fake)
    stripe_fake.world.expire(alice.begin(pack="500"))
    for event in stripe_fake.world.events:
        event["is_delivered"] = True
    reconcile()
    assert alice.order.state == Order.State.EXPIRED


def test_where_nothing_is_sold_there_is_nothing_to_look_at(settings: Settings) -> None:
    settings.STRIPE = StripeSettings("nobody")
    before = Reconciliation.objects.count()
    assert reconciliation.reconcile() is None
    assert Reconciliation.objects.count() == before


def test_money_that_goes_back_to_somebody_who_has_left_troubles_nobody(stripe_fake: StripeFake) -> None:
    gone = Buyer(stripe_fake)
    session = gone.buy(pack="500")
    customer = gone.customer
    leave(gone.person)
    stripe_fake.world.refund(session["payment_intent"], 2_000)
    refunded = stripe_fake.world.events[-1]
    announce(stripe_fake, refunded)
    assert [event.state for event in work_off([refunded])] == [StripeEvent.State.SKIPPED]
    found = reconcile()
    assert (found.problem, found.ended_at is not None, found.payments_corrected) == ("", True, 0)
    assert not StripeCustomer.objects.filter(stripe_id=customer).exists()
