"""What the books say of one person, to take away: the ledger as CSV, and what was bought."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from billing.statement import rows_of
from billing.stripe_rows import Order, Payment, Subscription
from klerai.accounts.models import Person

COLUMNS = ("number", "created_at", "kind", "run_id", "reason", "daily", "pack", "held", "daily_after", "pack_after")
_AT_ONCE = 500


def ledger_csv(person: Person) -> Iterator[str]:
    """The whole ledger, newest first, some rows at a time. A cell that a spreadsheet would compute is kept as text."""
    yield _line(COLUMNS)
    before: int | None = None
    while rows := rows_of(person.pk, before=before, limit=_AT_ONCE, run_id=None, kinds=None):
        for row in rows:
            reason = f"'{row.reason}" if row.reason[:1] in "=+-@\t\r" and row.reason else row.reason
            cells = (row.number, row.created_at.isoformat(), row.kind, row.run_id or "", reason)
            yield _line((*cells, row.daily, row.pack, row.held, row.daily_after, row.pack_after))
        before = rows[-1].number


def purchases_of(person: Person) -> dict[str, Any]:
    """Amounts in US cents."""
    mine = {"person_id": person.pk}
    orders = Order.objects.filter(**mine).select_related("price__plan", "price__pack").order_by("created_at")
    payments = Payment.objects.filter(**mine).order_by("paid_at")
    subscriptions = Subscription.objects.filter(**mine).select_related("plan").order_by("started_at")
    return {
        "orders": [
            {
                "id": str(order.pk),
                "item": str(order.price.plan or order.price.pack),
                "cents": order.price.cents,
                "currency": order.price.currency,
                "credits": order.credits,
                "state": order.state,
                "created_at": order.created_at,
            }
            for order in orders
        ],
        "payments": list(
            payments.values("payment_intent", "cents", "credits_granted", "credits_revoked", "invoice", "paid_at")
        ),
        "subscriptions": [
            {
                "id": each.pk,
                "plan": each.plan.title,
                "status": each.status,
                "started_at": each.started_at,
                "paid_until": each.paid_until,
                "ended_at": each.ended_at,
            }
            for each in subscriptions
        ],
    }


def _line(cells: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
