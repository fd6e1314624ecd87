"""What a person bought, as our rows say it, without what differs between two who bought the same."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from billing.credits import entries_of
from billing.models import Order, Payment, Reversal, Subscription, Transaction
from billing.plans import plan_of
from klerai.accounts.models import Person

MOST_ROWS = 10_000


def books(person: Person, *, now: datetime) -> str:
    """Byte for byte the same for two people to whom the same happened, whatever order it was heard in.

    Ids are told by their place among the person's own; what time a row was written, and what was free after it, depend
    on when it was heard.
    """
    names = _names(person)
    said: dict[str, Any] = {
        "plan": plan_of(person, now=now).name,
        "orders": [(order.state, order.credits, order.problem) for order in _orders(person)],
        "payments": [
            (names[payment.pk], payment.credits_granted, payment.credits_revoked, payment.cents, bool(payment.invoice))
            for payment in _payments(person)
        ],
        "reversals": [
            (names[reversal.pk], reversal.kind, reversal.cents, reversal.credits_taken, reversal.is_restored)
            for reversal in _reversals(person)
        ],
        "subscriptions": [_subscription(subscription, names) for subscription in _subscriptions(person)],
        "ledger": sorted(
            (row.kind, _key(names, keys[row.id]), row.daily, row.pack, row.held, row.spent)
            for keys in [dict(Transaction.objects.filter(person_id=person.pk).values_list("pk", "key"))]
            for row in entries_of(person, limit=MOST_ROWS)
        ),
    }
    return json.dumps(said, default=str)


def grants_by_payment(person: Person) -> dict[str, int]:
    """How often each payment was granted."""
    keys = Transaction.objects.filter(person_id=person.pk, key__startswith="grant:pack:").values_list("key", flat=True)
    return {payment.pk: list(keys).count(payment.ledger_key) for payment in _payments(person)}


def _subscription(row: Subscription, names: dict[str, str]) -> tuple[Any, ...]:
    times = (row.period_start, row.period_end, row.paid_until, row.cancels_at, row.ended_at, row.unpaid_since)
    since = [None if time is None else (time - row.started_at).total_seconds() for time in times]
    return (names[row.pk], row.plan_id, row.status, since, row.spent_before, row.problem)


def _names(person: Person) -> dict[str, str]:
    """Every Stripe id of the person by its kind and its place; ids of the fake grow with time."""
    ids = [payment.pk for payment in _payments(person)]
    ids += [reversal.pk for reversal in _reversals(person)]
    ids += [subscription.pk for subscription in _subscriptions(person)]
    return {id: f"{id.partition('_')[0]}{place}" for place, id in enumerate(ids)}


def _key(names: dict[str, str], key: str) -> str:
    prefix, _, id = key.rpartition(":")
    return f"{prefix}:{names[id]}" if id in names else prefix


def _orders(person: Person) -> Any:
    return Order.objects.filter(person_id=person.pk).order_by("created_at")


def _payments(person: Person) -> Any:
    return Payment.objects.filter(person_id=person.pk).order_by("pk")


def _reversals(person: Person) -> Any:
    return Reversal.objects.filter(payment__person_id=person.pk).order_by("pk")


def _subscriptions(person: Person) -> Any:
    return Subscription.objects.filter(person_id=person.pk).order_by("pk")
