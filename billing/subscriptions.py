"""A person's subscription as Stripe has it, written whenever there is news of it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from billing import offers, past_due
from billing import purse as purses
from billing.gateway import Gateway
from billing.outcomes import APPLIED, Outcome, Skipped
from billing.stripe_objects import SubscriptionFacts
from billing.stripe_rows import StripeCustomer, Subscription
from klerai.accounts.models import Person

LIVE = ("active", "trialing", "past_due", "incomplete", "unpaid", "paused")
SECOND = (
    "A second subscription of the same person. It was cancelled at once; what was paid for it has to be given back."
)
logger = structlog.get_logger(__name__)

_SPENT_SINCE = """
    SELECT coalesce(sum(entry.amount), 0)
    FROM billing_transaction movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id
    WHERE account.kind = 'spent' AND account.bucket = 'daily' AND movement.person_id = %s
      AND movement.kind = 'settle' AND movement.created_at >= %s
"""


def refresh(customer: StripeCustomer, stripe: Gateway, subscription_id: str, *, now: datetime | None = None) -> Outcome:
    """Ask Stripe how the subscription stands and write it. The customer must be locked.

    A second one beside one that lives is cancelled at Stripe, and flagged: the one that was begun first stays.
    """
    facts = stripe.subscription(subscription_id)
    if facts is None:
        return Skipped("Stripe has no such subscription any more.")
    if facts.customer != customer.stripe_id:
        return Skipped("It is of another customer.")
    outcome = write(customer.person_id, facts, now=now or timezone.now())
    first = _first_of(customer.person_id)
    for second in living(customer.person_id):
        if first is not None and second.pk != first:
            _cancel_second(stripe, second, now=now or timezone.now())
    return outcome


@transaction.atomic
def write(person_id: UUID, facts: SubscriptionFacts, *, now: datetime) -> Outcome:
    """Write what Stripe says. The plan counts from here on: the day is topped up with the next look at it."""
    price = offers.known_price(facts.price_ids)
    if price is None or price.plan is None:
        logger.error("subscription_of_unknown_price", subscription=facts.id, prices=facts.price_ids)
        return Skipped("None of our plans has this price.")
    if not Person.objects.filter(pk=person_id).exists():
        return Skipped("Its person is gone.")
    purse = purses.lock(person_id)
    before = Subscription.objects.filter(pk=facts.id).first()
    subscription, _ = Subscription.objects.update_or_create(
        stripe_id=facts.id,
        defaults={
            "person_id": person_id,
            "plan": price.plan,
            "status": facts.status,
            "started_at": facts.started_at,
            "period_start": facts.period_start,
            "period_end": facts.period_end,
            "paid_until": facts.paid_until,
            "cancels_at": facts.cancels_at,
            "ended_at": facts.ended_at,
            "unpaid_since": facts.unpaid_since,
            "spent_before": _spent_before(purse, before, facts.period_start),
            "applied_at": now,
        },
    )
    purses.forget_plan(purse)
    past_due.notify(subscription, now=now)
    return APPLIED


def subscription_of(person: Person) -> Subscription | None:
    """The one that lives, else the one that ended last; None for somebody who never had one."""
    theirs = Subscription.objects.filter(person_id=person.pk).select_related("plan")
    lasting = theirs.filter(ended_at=None).exclude(status="incomplete_expired").order_by("started_at", "pk").first()
    return lasting or theirs.order_by("-ended_at", "-started_at").first()


def living(person_id: UUID) -> QuerySet[Subscription]:
    """Those that Stripe may still take money for."""
    return Subscription.objects.filter(person_id=person_id, ended_at=None, status__in=LIVE)


def has_living(person: Person) -> bool:
    return _first_of(person.pk) is not None


def _first_of(person_id: UUID) -> str | None:
    return living(person_id).order_by("started_at", "pk").values_list("pk", flat=True).first()


def _cancel_second(stripe: Gateway, second: Subscription, *, now: datetime) -> None:
    stripe.cancel_now(second.pk)
    facts = stripe.subscription(second.pk)
    if facts is not None:
        write(second.person_id, facts, now=now)
    Subscription.objects.filter(pk=second.pk).update(problem=SECOND)
    logger.error("second_subscription", subscription=second.pk, person=str(second.person_id))


def _spent_before(purse: purses.Purse, before: Subscription | None, period_start: datetime) -> int:
    """What of the daily credits had been spent, ever, when the period began; counted once a period."""
    if before is not None and before.period_start == period_start:
        return before.spent_before
    with connection.cursor() as cursor:
        cursor.execute(_SPENT_SINCE, [purse.person_id, period_start])
        return purse.balances.get(("spent", "daily"), 0) - int(cursor.fetchone()[0])
