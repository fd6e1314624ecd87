"""What a person's questions were charged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from klerai.accounts.models import Person

_CHARGES = """
    SELECT movement.run_id, movement.created_at,
           coalesce(sum(entry.amount) FILTER (WHERE account.bucket = 'daily'), 0),
           coalesce(sum(entry.amount) FILTER (WHERE account.bucket = 'pack'), 0)
    FROM billing_transaction movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'spent'
    WHERE movement.person_id = %(person_id)s AND movement.kind = 'settle'
      AND (%(since)s::timestamptz IS NULL OR movement.created_at >= %(since)s)
    GROUP BY movement.id, movement.number
    ORDER BY movement.number
"""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one question cost, and from what it was taken."""

    run_id: UUID
    at: datetime
    daily: int
    pack: int

    @property
    def credits(self) -> int:
        return self.daily + self.pack


def charges_of(person: Person, *, since: datetime | None = None) -> tuple[Charge, ...]:
    """Every question that was charged, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_CHARGES, {"person_id": person.pk, "since": since})
        return tuple(Charge(run_id, at, int(daily), int(pack)) for run_id, at, daily, pack in cursor.fetchall())
