"""Taking back what is left of a pack: never what was spent, and never another pack's credits."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from billing import journal
from billing import purse as purses
from billing.journal import Draft
from billing.packs import lots
from billing.purse import Purse
from billing.stripe_rows import Payment


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
    return next((lot.left for lot in lots(purse) if lot.key == payment.ledger_key), 0)
