"""Packs that were paid for: granted once for each payment, and taken back as far as refunds and disputes reach."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from billing import credits, offers, revoking, subscriptions
from billing.gateway import Gateway
from billing.outcomes import APPLIED, Outcome, Skipped
from billing.stripe_objects import PaymentFacts, ReversalFacts, SessionFacts
from billing.stripe_rows import Order, Payment, Reversal, StripeCustomer
from klerai.accounts.models import Person
from klerai.failpoints import failpoint

CURRENCY = "usd"
logger = structlog.get_logger(__name__)


def refresh_session(
    customer: StripeCustomer, stripe: Gateway, session_id: str, *, now: datetime | None = None
) -> Outcome:
    """Ask Stripe how a checkout stands and write what follows from it. The customer must be locked."""
    moment = now or timezone.now()
    session = stripe.session(session_id)
    if session is None:
        return Skipped("Stripe has no such checkout any more.")
    order = _order(customer, session)
    if order is None:
        return Skipped("No order of this person began it.")
    if session.status == "expired":
        return _close(order, Order.State.EXPIRED)
    if session.status != "complete":
        return Skipped("The checkout is still open.")
    if problem := _problem(order, session):
        logger.error("checkout_refused", order=str(order.pk), problem=problem)
        _close(order, Order.State.FAILED, problem)
        return Skipped(problem)
    if order.price.plan_id is not None:
        if not session.subscription:
            return Skipped("The checkout has no subscription.")
        _close(order, Order.State.PAID)
        return subscriptions.refresh(customer, stripe, session.subscription, now=moment)
    payment = stripe.payment(session.payment_intent) if session.payment_intent else None
    if session.payment_status != "paid" or payment is None or payment.status != "succeeded":
        failed = payment is not None and payment.status in ("canceled", "requires_payment_method")
        return _close(order, Order.State.FAILED) if failed else Skipped("It is not paid yet.")
    return write(order, session, payment, now=moment)


def refresh_payment(
    customer: StripeCustomer, stripe: Gateway, payment_id: str, *, now: datetime | None = None
) -> Outcome:
    """Ask Stripe for a pack's payment, its refunds and its disputes. The customer must be locked."""
    payment = Payment.objects.filter(pk=payment_id, person_id=customer.person_id).select_related("order").first()
    session_id = payment.order.session_id if payment is not None else stripe.session_of_payment(payment_id)
    if not session_id:
        return Skipped("It did not pay for a pack.")
    return refresh_session(customer, stripe, session_id, now=now)


@transaction.atomic
def write(order: Order, session: SessionFacts, facts: PaymentFacts, *, now: datetime) -> Outcome:
    """Grant the pack of a payment, and judge whatever took the payment back since."""
    person = Person.objects.filter(pk=order.person_id).first()
    if person is None or order.credits is None:
        return Skipped("Its person is gone.")
    payment, _ = Payment.objects.get_or_create(
        payment_intent=facts.id,
        defaults={
            "person_id": person.pk,
            "order": order,
            "cents": facts.cents,
            "credits_granted": order.credits,
            "invoice": session.invoice,
            "charge": facts.charge,
            "paid_at": facts.paid_at,
        },
    )
    failpoint("stripe_before_grant")
    credits.grant(person, amount=order.credits, reason=_reason(order), key=payment.ledger_key, now=now)
    _close(order, Order.State.PAID)
    returned = 0
    for reversal in facts.reversals:
        if reversal.is_taken:
            before, returned = returned, returned + reversal.cents
            most = _share(payment, returned) - _share(payment, before)
            _judge(payment, reversal, most=most, now=now)
            returned = before if reversal.is_restored else returned
    return APPLIED


def _judge(payment: Payment, facts: ReversalFacts, *, most: int, now: datetime) -> None:
    """Take what a refund or dispute reaches, once, and give it back once when the money came back to us."""
    reversal = Reversal.objects.filter(pk=facts.id).first()
    if reversal is None:
        reason = "Refund of a pack" if facts.kind == "refund" else "Disputed payment of a pack"
        taken = revoking.revoke(payment, most=most, key=f"revoke:{facts.id}", reason=reason, now=now)
        reversal = Reversal.objects.create(
            stripe_id=facts.id, payment=payment, kind=facts.kind, cents=facts.cents, credits_taken=taken
        )
        _add_revoked(payment, taken)
    if facts.is_restored and not reversal.is_restored:
        reason = "Refund that did not go through" if facts.kind == "refund" else "Dispute decided for us"
        taken = reversal.credits_taken
        revoking.restore(payment, amount=taken, key=f"restore:{facts.id}", reason=reason, now=now)
        reversal.is_restored = True
        reversal.save(update_fields=["is_restored"])
        _add_revoked(payment, -taken)


def _add_revoked(payment: Payment, credits: int) -> None:
    payment.credits_revoked += credits
    payment.save(update_fields=["credits_revoked"])


def _share(payment: Payment, cents: int) -> int:
    """The credits that so much of the money stands for, rounded for the person."""
    return payment.credits_granted * min(cents, payment.cents) // payment.cents


def _order(customer: StripeCustomer, session: SessionFacts) -> Order | None:
    """The person's own order that the checkout came back with."""
    try:
        order_id = UUID(session.reference)
    except ValueError:
        return None
    if session.customer != customer.stripe_id:
        return None
    return Order.objects.filter(pk=order_id, person_id=customer.person_id).select_related("price").first()


def _problem(order: Order, session: SessionFacts) -> str:
    """Why what was paid is not what was ordered; empty when it is."""
    price = offers.known_price(session.price_ids)
    if order.session_id and order.session_id != session.id:
        return "Another checkout was begun for this order."
    if price is None or (price.plan_id, price.pack_id) != (order.price.plan_id, order.price.pack_id):
        return "The checkout was not for what was ordered."
    if session.currency != CURRENCY or session.subtotal != price.cents:
        return f"The checkout came to {session.subtotal} {session.currency}, not to {price.cents} {CURRENCY}."
    return ""


def _close(order: Order, state: Order.State, problem: str = "") -> Outcome:
    """A paid order stays paid, whatever else is heard of it."""
    Order.objects.filter(pk=order.pk).exclude(state=Order.State.PAID).update(state=state, problem=problem)
    return APPLIED


def _reason(order: Order) -> str:
    return f"Pack of {order.credits:,} credits"
