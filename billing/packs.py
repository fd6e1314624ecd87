"""The credits that never expire, by where they came from: what each pack or gift brought, and what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from billing import purse as purses
from billing.models import Transaction
from billing.purse import Purse
from billing.statement import LedgerRow
from billing.stripe_rows import Payment, Reversal
from klerai.accounts.models import Person

# What came back to a pack belongs to its own grant, which then has less revoked.
_GRANTS = """
    SELECT movement.key, movement.reason, movement.created_at, entry.amount
    FROM billing_transaction movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id
    WHERE movement.person_id = %s AND movement.kind = 'grant' AND movement.key NOT LIKE 'restore:%%'
      AND account.kind = 'wallet' AND account.bucket = 'pack'
    ORDER BY movement.number
"""


@dataclass(frozen=True, slots=True)
class Lot:
    """A pack that was bought, or credits that were given. `taken_back` is what refunds and disputes took of it."""

    key: str
    reason: str
    at: datetime
    granted: int
    taken_back: int
    left: int
    order_id: UUID | None


def lots_of(person: Person) -> tuple[Lot, ...]:
    """Every pack and gift, the oldest first: the order in which they are spent. What is held counts as used."""
    return lots(purses.read(person.pk))


def lots(purse: Purse) -> tuple[Lot, ...]:
    used = purse.balances.get(("spent", "pack"), 0) + purse.balances.get(("held", "pack"), 0)
    payments = {payment.ledger_key: payment for payment in Payment.objects.filter(person_id=purse.person_id)}
    found = []
    for key, reason, at, granted in _grants(purse.person_id):
        payment = payments.get(key)
        taken_back = payment.credits_revoked if payment is not None else 0
        stands = granted - taken_back
        order_id = payment.order_id if payment is not None else None
        found.append(Lot(key, reason, at, granted, taken_back, max(0, stands - used), order_id))
        used = max(0, used - stands)
    return tuple(found)


def orders_behind(person: Person, rows: Sequence[LedgerRow]) -> dict[UUID, UUID]:
    """The purchase that a row came of, by the row's id, where it came of one: paid, refunded, disputed or restored."""
    keys = Transaction.objects.filter(person_id=person.pk, pk__in=[row.id for row in rows if row.run_id is None])
    orders: dict[str, UUID] = {
        payment.ledger_key: payment.order_id for payment in Payment.objects.filter(person_id=person.pk)
    }
    for reversal in Reversal.objects.filter(payment__person_id=person.pk).select_related("payment"):
        order_id = reversal.payment.order_id
        orders |= {f"revoke:{reversal.pk}": order_id, f"restore:{reversal.pk}": order_id}
    return {id: orders[key] for id, key in keys.values_list("pk", "key") if key in orders}


def _grants(person_id: UUID) -> list[tuple[str, str, datetime, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_GRANTS, [person_id])
        rows: list[tuple[str, str, datetime, int]] = cursor.fetchall()
    return rows
