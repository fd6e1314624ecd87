"""Closing the books of somebody who leaves: subscriptions end first, credits last, and what stays names nobody."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from billing import credits, inbox, journal, subscriptions
from billing import purse as purses
from billing.customers import stripe_id_of
from billing.gateway import Gateway, gateway
from billing.inbox_rows import StripeEvent
from billing.journal import Draft
from billing.local_rows import LocalObject
from billing.models import Transaction
from billing.purse import Moves
from billing.stripe_rows import Order, StripeCustomer
from klerai.accounts.models import Person


def has_subscription(person: Person) -> bool:
    return subscriptions.has_living(person)


def end_subscriptions(person: Person) -> None:
    """Cancel at once, at Stripe and here, whatever the person pays for by the month.

    A checkout that was begun is closed first, and looked at: it may have been paid a moment ago. Raises NothingSold,
    StripeUnavailable and StripeRefused; then a subscription may still live, and the person must stay.
    """
    customer_id = stripe_id_of(person.pk)
    begun = Order.objects.filter(person_id=person.pk, state=Order.State.OPEN).exclude(session_id="")
    if not (subscriptions.has_living(person) or (customer_id and begun.exists())):
        return
    with gateway() as stripe, inbox.locked_customer(customer_id) as customer:
        if customer is None:
            return
        for session_id in begun.values_list("session_id", flat=True):
            stripe.expire_session(session_id)
            inbox.refresh(customer, stripe, "session", session_id)
        for subscription_id in list(subscriptions.living(person.pk).values_list("pk", flat=True)):
            _cancel(stripe, customer, subscription_id)


@transaction.atomic
def close_books(person: Person) -> None:
    """Give back what runs hold, let the rest expire, and forget who the person is at Stripe.

    The ledger, orders and payments stay, under an id that belongs to nobody. The purse stays locked until the
    caller's transaction ends, so that no run begins meanwhile.
    """
    if purses.read(person.pk).ids:
        purses.lock(person.pk)
        for run_id in _open_runs(person.pk):
            credits.release(person, run_id=run_id)
        _let_expire(person.pk)
    if customer_id := stripe_id_of(person.pk):
        LocalObject.objects.filter(customer_id=customer_id).delete()
        StripeEvent.objects.filter(customer_id=customer_id).update(customer_id="")
    StripeCustomer.objects.filter(pk=person.pk).delete()
    Order.objects.filter(person_id=person.pk).update(return_url="")


def _cancel(stripe: Gateway, customer: StripeCustomer, subscription_id: str) -> None:
    facts = stripe.subscription(subscription_id)
    if facts is not None and facts.ended_at is None:
        stripe.cancel_now(subscription_id)
    subscriptions.refresh(customer, stripe, subscription_id)


def _open_runs(person_id: uuid.UUID) -> list[uuid.UUID]:
    """Those that hold something now: only what was not resolved is looked at."""
    mine = Transaction.objects.filter(person_id=person_id, run_id__isnull=False)
    resolved = mine.filter(kind__in=[Transaction.Kind.SETTLE, Transaction.Kind.RELEASE], run_id=OuterRef("run_id"))
    holds = mine.filter(~Exists(resolved), kind=Transaction.Kind.HOLD)
    return [run_id for run_id in holds.values_list("run_id", flat=True).distinct() if run_id is not None]


def _let_expire(person_id: uuid.UUID) -> None:
    purse = purses.lock(person_id)
    moves: Moves = {
        ("wallet", "daily"): -purse.daily,
        ("expired", "daily"): purse.daily,
        ("wallet", "pack"): -purse.pack,
        ("expired", "pack"): purse.pack,
    }
    if purse.daily or purse.pack:
        key = f"expire:left:{person_id}"
        journal.append(purse, Draft(key, "expire", moves, timezone.now(), reason="The account was deleted."))
