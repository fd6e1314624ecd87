"""A person's ten accounts, read or locked together."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal, get_args

from django.db import connection

Kind = Literal["wallet", "held", "issued", "spent", "expired"]
Bucket = Literal["daily", "pack"]
Slot = tuple[Kind, Bucket]
Moves = Mapping[Slot, int]

_READ = """
    SELECT kind, bucket, id, balance, day, granted, blocked_at IS NOT NULL, plan, plan_until
    FROM billing_account WHERE person_id = %s
"""
_LOCK = "SELECT kind, bucket, id, amount, day, granted, is_blocked, plan, plan_until FROM billing_lock(%s, %s)"
_CREATE = """
    INSERT INTO billing_account (id, person_id, kind, bucket)
    SELECT gen_random_uuid(), %s::uuid, kind, bucket
    FROM unnest(%s::text[]) kind, unnest(%s::text[]) bucket ORDER BY kind, bucket
    ON CONFLICT (person_id, kind, bucket) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Purse:
    """What stood in the accounts when they were read. `day` is the date the daily credits belong to.

    `plan` is the one they were granted by, good until `plan_until`; it is empty where that has to be looked at.
    """

    person_id: uuid.UUID
    ids: Mapping[Slot, uuid.UUID]
    balances: Mapping[Slot, int]
    day: date
    granted: int
    is_blocked: bool
    plan: str
    plan_until: datetime | None

    @property
    def daily(self) -> int:
        return self.balances.get(("wallet", "daily"), 0)

    @property
    def pack(self) -> int:
        return self.balances.get(("wallet", "pack"), 0)

    @property
    def held(self) -> int:
        return self.balances.get(("held", "daily"), 0) + self.balances.get(("held", "pack"), 0)

    def after(self, moves: Moves) -> Purse:
        balances = {slot: balance + moves.get(slot, 0) for slot, balance in self.balances.items()}
        return replace(self, balances=balances)


@dataclass(frozen=True, slots=True)
class Share:
    """What a run holds of one bucket and, for daily credits, one date."""

    bucket: Bucket
    day: date
    amount: int


def read(person_id: uuid.UUID) -> Purse:
    """The purse without a lock: for showing, never for deciding on a movement."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [person_id])
        return _purse(person_id, cursor.fetchall())


def lock(person_id: uuid.UUID) -> Purse:
    """The purse, locked in one order until the transaction ends; made first when the person has none.

    Every movement starts here: two movements of one person never interleave and never deadlock.
    """
    return lock_with_holds(person_id, run_id=None)[0]


def lock_with_holds(person_id: uuid.UUID, *, run_id: uuid.UUID | None) -> tuple[Purse, tuple[Share, ...]]:
    """The locked purse and what the run ever held, in the order it is spent: daily by date, then packs."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [person_id, run_id])
        rows = cursor.fetchall()
        if not rows:
            cursor.execute(_CREATE, [person_id, list(get_args(Kind)), list(get_args(Bucket))])
            cursor.execute(_LOCK, [person_id, run_id])
            rows = cursor.fetchall()
    shares = tuple(Share(bucket, day, amount) for kind, bucket, _, amount, day, *_ in rows if kind == "hold")
    return _purse(person_id, [row for row in rows if row[0] != "hold"]), shares


def mark_day(purse: Purse, *, day: date, granted: int, plan: str, plan_until: datetime | None) -> Purse:
    """Remember the day that is open, what was given for it and by which plan."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE billing_account SET day = %s, granted = %s, plan = %s, plan_until = %s WHERE id = %s",
            [day, granted, plan, plan_until, purse.ids["wallet", "daily"]],
        )
    return replace(purse, day=day, granted=granted, plan=plan, plan_until=plan_until)


def forget_plan(purse: Purse) -> None:
    """Have the plan looked at again with the next movement or look. The purse must be locked."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE billing_account SET plan = '' WHERE id = %s", [purse.ids["wallet", "daily"]])


def _purse(person_id: uuid.UUID, rows: list[tuple[Any, ...]]) -> Purse:
    ids: dict[Slot, uuid.UUID] = {}
    balances: dict[Slot, int] = {}
    opened, plan_gave, is_blocked, plan, plan_until = date.min, 0, False, "", None
    for kind, bucket, account_id, balance, day, granted, blocked, named, until in rows:
        ids[kind, bucket] = account_id
        balances[kind, bucket] = balance
        is_blocked = is_blocked or blocked
        if (kind, bucket) == ("wallet", "daily"):
            opened, plan_gave, plan, plan_until = day or date.min, granted, named, until
    return Purse(person_id, ids, balances, opened, plan_gave, is_blocked, plan, plan_until)
