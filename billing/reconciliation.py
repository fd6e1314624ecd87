"""The hourly comparison with Stripe: what was never announced to us, or never worked off, is found here."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import QuerySet
from django.forms.models import model_to_dict
from django.utils import timezone

from billing import inbox, past_due
from billing.customers import stripe_id_of
from billing.errors import NothingSold, SaleError
from billing.gateway import Gateway, gateway
from billing.inbox_rows import Reconciliation, StripeEvent
from billing.stripe_rows import Order, Payment, Reversal, StripeCustomer, Subscription

KEPT_AT_STRIPE = timedelta(days=30)
RECENT = timedelta(days=3)
FORGOTTEN = timedelta(minutes=10)  # a job that was not lost has come to it by then
_WAITING = (StripeEvent.State.RECEIVED, StripeEvent.State.FAILED)
logger = structlog.get_logger(__name__)


def reconcile(*, now: datetime | None = None) -> Reconciliation | None:
    """Make everything recent agree, and write down what did not; None where nothing is sold."""
    moment = now or timezone.now()
    result = Reconciliation.objects.create(started_at=moment)
    try:
        with gateway() as stripe:
            look = _Look(stripe, result, moment)
            for step in (look.events, look.subscriptions, look.payments):
                step()
    except NothingSold:
        result.delete()
        return None
    except SaleError as error:
        result.problem = f"{type(error).__name__}: {error}"[:300]
        logger.error("reconciliation_failed", problem=result.problem)
    past_due.notify_all(now=moment)
    result.ended_at = timezone.now()
    result.save()
    return result


@dataclass(slots=True)
class _Look:
    """One comparison, counted as it goes."""

    stripe: Gateway
    result: Reconciliation
    now: datetime

    def events(self) -> None:
        for facts in self.stripe.undelivered_events(self.now - KEPT_AT_STRIPE):
            if facts.object_type in inbox.KINDS and inbox.take_in(facts):
                self.result.events_missed += 1
                self._work_off(facts.id)
        forgotten = StripeEvent.objects.filter(state__in=_WAITING, received_at__lt=self.now - FORGOTTEN)
        for event_id in list(forgotten.order_by("created").values_list("pk", flat=True)):
            self._work_off(event_id)

    def subscriptions(self) -> None:
        living = dict(Subscription.objects.filter(ended_at=None).values_list("pk", "person_id"))
        customers = dict(StripeCustomer.objects.filter(pk__in=living.values()).values_list("person_id", "stripe_id"))
        wanted = {subscription: customers.get(person_id, "") for subscription, person_id in living.items()}
        wanted |= {facts.id: facts.customer for facts in self.stripe.subscriptions_since(self.now - RECENT)}
        for subscription, customer in wanted.items():
            rows = Subscription.objects.filter(pk=subscription)
            self.result.subscriptions_checked += 1
            self.result.subscriptions_corrected += self._refreshed(customer, "subscription", subscription, rows)

    def payments(self) -> None:
        """Checkouts that are not what our order says, and money that went back without our knowing."""
        for session in self.stripe.sessions_since(self.now - RECENT):
            orders = Order.objects.filter(session_id=session.id)
            if session.status == "open" or orders.exclude(state=Order.State.OPEN).exists():
                continue
            self.result.payments_checked += 1
            self.result.payments_corrected += self._refreshed(session.customer, "session", session.id, orders)
        for payment_id, facts in self.stripe.reversals_since(self.now - RECENT):
            payments = Payment.objects.filter(pk=payment_id)
            known = Reversal.objects.filter(pk=facts.id, is_restored=facts.is_restored).exists()
            if payment := (None if known or not facts.is_taken else payments.first()):
                customer = stripe_id_of(payment.person_id)
                self.result.payments_checked += 1
                self.result.payments_corrected += self._refreshed(customer, "payment", payment_id, payments)

    def _work_off(self, event_id: str) -> None:
        with suppress(SaleError):  # it says itself what failed
            self.result.events_applied += inbox.apply(event_id).state == StripeEvent.State.APPLIED

    def _refreshed(self, stripe_id: str, kind: str, object_id: str, rows: QuerySet[Any]) -> bool:
        """Whether asking again changed our row."""
        before = _contents(rows)
        with inbox.locked_customer(stripe_id) as customer:
            if customer is None:
                return False
            inbox.refresh(customer, self.stripe, kind, object_id)
        return _contents(rows) != before


def _contents(rows: QuerySet[Any]) -> list[dict[str, Any]]:
    return [model_to_dict(row, exclude=["applied_at"]) for row in rows.all()]
