"""A person's ledger as they read it: one row a transaction, newest first."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection

from billing.journal import TransactionKind

_ROWS = """
    SELECT movement.number, movement.id, movement.created_at, movement.kind, movement.run_id, movement.day,
           movement.reason, movement.daily_after, movement.pack_after,
           coalesce(sum(amount) FILTER (WHERE account.kind IN ('wallet', 'held') AND account.bucket = 'daily'), 0),
           coalesce(sum(amount) FILTER (WHERE account.kind IN ('wallet', 'held') AND account.bucket = 'pack'), 0),
           coalesce(sum(amount) FILTER (WHERE account.kind = 'held'), 0),
           coalesce(sum(amount) FILTER (WHERE account.kind = 'spent'), 0),
           coalesce(sum(amount) FILTER (WHERE account.kind = 'expired'), 0)
    FROM (
        SELECT * FROM billing_transaction
        WHERE person_id = %(person_id)s
          AND (%(before)s::bigint IS NULL OR number < %(before)s)
          AND (%(run_id)s::uuid IS NULL OR run_id = %(run_id)s)
          AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s))
        ORDER BY number DESC LIMIT %(limit)s
    ) movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id
    GROUP BY movement.number, movement.id, movement.created_at, movement.kind, movement.run_id, movement.day,
             movement.reason, movement.daily_after, movement.pack_after
    ORDER BY movement.number DESC
"""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One transaction. `daily` and `pack` are the change of what the person owns (free and held together).

    A hold therefore shows 0 and its amount under `held`; a settle shows minus what was spent, and minus what came
    back after its day had ended (`expired`).
    """

    number: int  # the cursor: rows before it are older
    id: uuid.UUID
    created_at: datetime
    kind: TransactionKind
    run_id: uuid.UUID | None
    day: date | None
    reason: str
    daily_after: int
    pack_after: int
    daily: int
    pack: int
    held: int
    spent: int
    expired: int

    @property
    def balance_after(self) -> int:
        """What was free to spend right after it."""
        return self.daily_after + self.pack_after


def rows_of(
    person_id: uuid.UUID,
    *,
    before: int | None,
    limit: int,
    run_id: uuid.UUID | None,
    kinds: Collection[TransactionKind] | None,
) -> tuple[LedgerRow, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            _ROWS,
            {
                "person_id": person_id,
                "before": before,
                "limit": limit,
                "run_id": run_id,
                "kinds": None if kinds is None else list(kinds),
            },
        )
        return tuple(LedgerRow(*row[:9], *map(int, row[9:])) for row in cursor.fetchall())
