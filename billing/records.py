"""What the books say of one person, to take away: the ledger as CSV, and what was bought."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from billing.statement import EVERYTHING, LedgerRow, Wanted, rows_of
from billing.stripe_rows import Order, Payment, Subscription
from klerai.accounts.models import Person

COLUMNS = ("number", "created_at", "kind", "run_id", "what", "daily", "pack", "held", "daily_after", "pack_after")
_AT_ONCE = 500
_COMPUTED = tuple("=+-@\t\r\n＝＋－＠")  # what a spreadsheet takes for the beginning of a formula


@dataclass(frozen=True, slots=True)
class Told:
    """What a row of the ledger was, in words, and the id its question goes by outside."""

    words: str
    run_id: UUID | None


Telling = Callable[[Person, Sequence[LedgerRow]], Iterable[Told]]


def ledger_csv(person: Person, wanted: Wanted = EVERYTHING, *, tell: Telling) -> Iterator[str]:
    """The rows wanted, newest first, some at a time. Words that a spreadsheet would compute are kept as text."""
    yield _line(COLUMNS)
    before: int | None = None
    while rows := rows_of(person.pk, wanted, before=before, limit=_AT_ONCE):
        lines = (
            _line((*_cells(row, told), row.daily, row.pack, row.held, row.daily_after, row.pack_after))
            for row, told in zip(rows, tell(person, rows), strict=True)
        )
        yield "".join(lines)
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


def _cells(row: LedgerRow, told: Told) -> tuple[object, ...]:
    words = f"'{told.words}" if told.words.lstrip(" ").startswith(_COMPUTED) else told.words
    return row.number, row.created_at.isoformat(), row.kind, told.run_id or "", words


def _line(cells: tuple[object, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
