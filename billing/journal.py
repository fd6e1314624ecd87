"""The writing and finding of transactions: each is written in one call, and the unique key lets it happen once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from django.db import connection

from billing.purse import Bucket, Kind, Moves, Purse, Slot

TransactionKind = Literal["grant", "hold", "settle", "release", "expire", "revoke"]
Resolution = Literal["settle", "release"]

_APPEND = """
    SELECT billing_append(
        %(key)s, %(kind)s, %(person_id)s, %(run_id)s, %(day)s, %(reason)s, %(created_by)s, %(now)s,
        %(daily_after)s, %(pack_after)s, %(accounts)s::uuid[], %(amounts)s::bigint[])
"""
_FIND = """
    SELECT found.kind, found.run_id, found.day, found.daily_after, found.pack_after,
           account.kind, account.bucket, entry.amount
    FROM billing_transaction found
    JOIN billing_entry entry ON entry.transaction_id = found.id
    JOIN billing_account account ON account.id = entry.account_id
    WHERE found.key = %s AND found.person_id = %s
"""
_HELD = """
    SELECT coalesce(sum(entry.amount), 0)
    FROM billing_transaction movement
    JOIN billing_entry entry ON entry.transaction_id = movement.id
    JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
    WHERE movement.run_id = %(run_id)s AND (%(person_id)s::uuid IS NULL OR movement.person_id = %(person_id)s)
"""
_OPEN = """
    SELECT hold.run_id
    FROM (SELECT DISTINCT person_id FROM billing_account WHERE kind = 'held' AND balance > 0) holder
    JOIN billing_transaction hold ON hold.person_id = holder.person_id AND hold.kind = 'hold'
    WHERE NOT EXISTS (SELECT FROM billing_transaction WHERE key = 'resolve:' || hold.run_id)
    GROUP BY hold.run_id
    HAVING %(before)s::timestamptz IS NULL OR min(hold.created_at) < %(before)s
    ORDER BY min(hold.number)
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A transaction to be written."""

    key: str
    kind: TransactionKind
    moves: Moves
    now: datetime
    run_id: uuid.UUID | None = None
    day: date | None = None
    reason: str = ""
    created_by: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A transaction as it stands in the ledger."""

    kind: TransactionKind
    day: date | None
    moves: Moves
    daily_after: int
    pack_after: int


def hold_key(run_id: uuid.UUID, ref: str | None) -> str:
    return f"hold:{run_id}:{ref}" if ref else f"hold:{run_id}"


def resolve_key(run_id: uuid.UUID) -> str:
    """Settle and release share it, so that a run can never have both."""
    return f"resolve:{run_id}"


def append(purse: Purse, draft: Draft) -> Purse | None:
    """Write the transaction and return the purse after it; the purse must be locked.

    None when the key is taken; for a hold also when the run is resolved, or holds credits of somebody else.
    """
    after = purse.after(draft.moves)
    moves = {purse.ids[slot]: amount for slot, amount in draft.moves.items() if amount}
    with connection.cursor() as cursor:
        cursor.execute(
            _APPEND,
            {
                "key": draft.key,
                "kind": draft.kind,
                "person_id": purse.person_id,
                "run_id": draft.run_id,
                "day": draft.day,
                "reason": draft.reason,
                "created_by": draft.created_by,
                "now": draft.now,
                "daily_after": after.daily,
                "pack_after": after.pack,
                "accounts": list(moves),
                "amounts": list(moves.values()),
            },
        )
        return after if cursor.fetchone() == (True,) else None


def find(key: str, *, person_id: uuid.UUID) -> Written | None:
    """The person's transaction under that key."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [key, person_id])
        rows = cursor.fetchall()
    if not rows:
        return None
    return _written(rows)


def held_for(run_id: uuid.UUID, *, person_id: uuid.UUID | None = None) -> int:
    """What the run holds now: 0 once it is resolved, and for anybody else."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"run_id": run_id, "person_id": person_id})
        return int(cursor.fetchone()[0])


def open_holds(before: datetime | None) -> tuple[uuid.UUID, ...]:
    """Runs with holds and no resolution, oldest first. Only people who hold something are looked at."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, {"before": before})
        return tuple(run_id for (run_id,) in cursor.fetchall())


def _written(rows: list[tuple[Any, ...]]) -> Written:
    kind, _, day, daily_after, pack_after, *_ = rows[0]
    moves: dict[Slot, int] = {}
    for row in rows:
        slot_kind: Kind = row[5]
        bucket: Bucket = row[6]
        moves[slot_kind, bucket] = row[7]
    return Written(kind, day, moves, daily_after, pack_after)
