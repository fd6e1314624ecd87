"""Stripe's announcements: taken in once each, then worked off by asking Stripe how the thing they name stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from procrastinate.contrib.django import app

from billing import payments, signature, subscriptions
from billing.customers import stripe_id_of
from billing.errors import BadAnnouncement
from billing.gateway import Gateway, gateway
from billing.inbox_rows import StripeEvent
from billing.outcomes import Applied, Outcome, Skipped
from billing.stripe_objects import EventFacts
from billing.stripe_rows import Payment, StripeCustomer
from klerai.failpoints import failpoint

KINDS = ("session", "subscription", "payment")
QUEUE = "stripe"
_LONGEST_NOTE = 300
_INSERT = """
    INSERT INTO billing_stripeevent
        (id, type, created, api_version, livemode, object_type, object_id, customer_id, state, attempts, note,
         received_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'received', 0, '', now())
    ON CONFLICT (id) DO NOTHING
"""


def read(raw: bytes, header: str, *, now: datetime) -> EventFacts:
    """What was announced. Raises BadSignature, or BadAnnouncement where it is signed and still not for us."""
    signature.check(raw, header, secret=settings.STRIPE.webhook_secret, now=now)
    try:
        facts = EventFacts.of(json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadAnnouncement("It is not an event.") from error
    if facts.livemode != settings.STRIPE.is_live:
        raise BadAnnouncement("It is of the other mode: test or live.")
    if facts.account:
        raise BadAnnouncement("It is of another account.")
    return facts


@transaction.atomic
def take_in(facts: EventFacts) -> bool:
    """Write the announcement down and queue its work, both or neither; False when it had been written before."""
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            [
                *(facts.id, facts.type, facts.created, facts.api_version, facts.livemode),
                *(facts.object_type, facts.object_id, facts.customer),
            ],
        )
        is_new = bool(cursor.rowcount)
    if is_new:
        app.configure_task("apply_stripe_event", queue=QUEUE).defer(event_id=facts.id)
    return is_new


def apply(event_id: str) -> StripeEvent:
    """Make our rows say what Stripe says of the thing announced. Safe to do again, also while another does it.

    Raises what Stripe's being away raises; the event then says so, and waits to be tried again.
    """
    event = StripeEvent.objects.get(pk=event_id)
    if event.state in (StripeEvent.State.APPLIED, StripeEvent.State.SKIPPED):
        return event
    StripeEvent.objects.filter(pk=event_id).update(attempts=F("attempts") + 1)
    try:
        with gateway() as stripe:
            _apply(event, stripe)
    except Exception as error:
        _note(event, StripeEvent.State.FAILED, f"{type(error).__name__}: {error}")
        raise
    failpoint("stripe_after_commit")
    event.refresh_from_db()
    return event


@contextmanager
def locked_customer(stripe_id: str) -> Iterator[StripeCustomer | None]:
    """Our row of the customer, locked: asking comes after, so that no older answer overwrites a newer one."""
    with transaction.atomic():
        yield StripeCustomer.objects.select_for_update().filter(stripe_id=stripe_id).first()


def refresh(customer: StripeCustomer, stripe: Gateway, kind: str, object_id: str) -> Outcome:
    """Ask for one thing of a locked customer and write what it says."""
    match kind:
        case "session":
            return payments.refresh_session(customer, stripe, object_id)
        case "subscription":
            return subscriptions.refresh(customer, stripe, object_id)
        case "payment":
            return payments.refresh_payment(customer, stripe, object_id)
    return Skipped("Nothing of ours depends on it.")


def _apply(event: StripeEvent, stripe: Gateway) -> None:
    if event.object_type not in KINDS:
        _note(event, StripeEvent.State.SKIPPED, "Nothing of ours depends on it.")
        return
    with locked_customer(_customer_of(event, stripe)) as customer:
        if customer is None:
            _note(event, StripeEvent.State.SKIPPED, "It is of nobody here.")
            return
        match refresh(customer, stripe, event.object_type, event.object_id):
            case Applied():
                _note(event, StripeEvent.State.APPLIED, "")
            case Skipped(why):
                _note(event, StripeEvent.State.SKIPPED, why)
        failpoint("stripe_after_effect")


def _customer_of(event: StripeEvent, stripe: Gateway) -> str:
    """Whose thing it is. Refunds and disputes do not say, but their payment does, and that never changes."""
    if event.customer_id or event.object_type != "payment":
        return event.customer_id
    known = Payment.objects.filter(pk=event.object_id).values_list("person_id", flat=True).first()
    if known is not None:
        return stripe_id_of(known)
    facts = stripe.payment(event.object_id)
    return facts.customer if facts is not None else ""


def _note(event: StripeEvent, state: StripeEvent.State, note: str) -> None:
    StripeEvent.objects.filter(pk=event.pk).update(state=state, note=note[:_LONGEST_NOTE])
