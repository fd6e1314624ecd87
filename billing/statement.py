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
          AND (%(run_ids)s::uuid[] IS NULL OR run_id = ANY(%(run_ids)s))
          AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s))
          AND (%(of_a_day)s::boolean IS NULL OR (day IS NOT NULL) = %(of_a_day)s)
          AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
          AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s)
        ORDER BY number DESC LIMIT %(limit)s
    ) movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id
    GROUP BY movement.number, movement.id, movement.created_at, movement.kind, movement.run_id, movement.day,
             movement.reason, movement.daily_after, movement.pack_after
    ORDER BY movement.number DESC
"""

# Whatever is held now, less what was put aside and given back after each of these rows.
_HELD_AFTER = """
    WITH moved AS MATERIALIZED (
        SELECT movement.number, entry.amount
        FROM billing_transaction movement
        JOIN billing_entry entry ON entry.transaction_id = movement.id
        JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
        WHERE movement.person_id = %(person_id)s
          AND movement.number > (SELECT min(number) FROM unnest(%(numbers)s::bigint[]) number)
    ), now AS (
        SELECT coalesce(sum(balance), 0) AS held FROM billing_account
        WHERE person_id = %(person_id)s AND kind = 'held'
    )
    SELECT wanted.number, now.held - coalesce((SELECT sum(amount) FROM moved WHERE number > wanted.number), 0)
    FROM unnest(%(numbers)s::bigint[]) AS wanted (number), now
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of a ledger are asked for; what is left out leaves none out.

    `of_a_day` parts the rows of daily credits, which belong to a date, from those of packs.
    """

    kinds: Collection[TransactionKind] | None = None
    run_ids: Collection[uuid.UUID] | None = None
    of_a_day: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = Wanted()


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
    person_id: uuid.UUID, wanted: Wanted = EVERYTHING, *, before: int | None = None, limit: int
) -> tuple[LedgerRow, ...]:
    asked = {
        "person_id": person_id,
        "before": before,
        "limit": limit,
        "run_ids": None if wanted.run_ids is None else list(wanted.run_ids),
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "of_a_day": wanted.of_a_day,
        "since": wanted.since,
        "until": wanted.until,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, asked)
        return tuple(LedgerRow(*row[:9], *map(int, row[9:])) for row in cursor.fetchall())


def held_after(person_id: uuid.UUID, numbers: Collection[int]) -> dict[int, int]:
    """What was put aside for questions right after each of these rows."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD_AFTER, {"person_id": person_id, "numbers": list(numbers)})
        return {number: int(held) for number, held in cursor.fetchall()}
