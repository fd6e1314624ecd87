"""Taking back what is left of a pack: never what was spent, and never another pack's credits."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from billing import journal
from billing import purse as purses
from billing.journal import Draft
from billing.purse import Purse
from billing.stripe_rows import Payment

# What came back to a pack belongs to its own grant, which then has less revoked.
_GRANTS = """
    SELECT movement.key, entry.amount
    FROM billing_transaction movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id
    WHERE movement.person_id = %s AND movement.kind = 'grant' AND movement.key NOT LIKE 'restore:%%'
      AND account.kind = 'wallet' AND account.bucket = 'pack'
    ORDER BY movement.number
"""


@transaction.atomic
def revoke(payment: Payment, *, most: int, key: str, reason: str, now: datetime) -> int:
    """Take back at most so many of a payment's credits, once for each key; how many there were to take.

    Packs are spent in the order they came, so a payment's credits are spent when those before it are.
    """
    purse = purses.lock(payment.person_id)
    taken = min(most, _unspent(purse, payment))
    if taken <= 0:
        return 0
    draft = Draft(
        key=key,
        kind="revoke",
        moves={("wallet", "pack"): -taken, ("issued", "pack"): taken},
        reason=reason,
        now=now,
    )
    return taken if journal.append(purse, draft) else 0


@transaction.atomic
def restore(payment: Payment, *, amount: int, key: str, reason: str, now: datetime) -> None:
    """Give back what was taken, once for each key."""
    if not amount:
        return
    draft = Draft(
        key=key,
        kind="grant",
        moves={("issued", "pack"): -amount, ("wallet", "pack"): amount},
        reason=reason,
        now=now,
    )
    journal.append(purses.lock(payment.person_id), draft)


def _unspent(purse: Purse, payment: Payment) -> int:
    used = purse.balances.get(("spent", "pack"), 0) + purse.balances.get(("held", "pack"), 0)
    revoked = _revoked(payment.person_id)
    for key, amount in _grants(payment.person_id):
        stands = amount - revoked.get(key, 0)
        if key == payment.ledger_key:
            return max(0, stands - used)
        used = max(0, used - stands)
    return 0


def _grants(person_id: UUID) -> list[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_GRANTS, [person_id])
        rows: list[tuple[str, int]] = cursor.fetchall()
    return rows


def _revoked(person_id: UUID) -> dict[str, int]:
    return {payment.ledger_key: payment.credits_revoked for payment in Payment.objects.filter(person_id=person_id)}
