"""One person's ledger, added up again from its entries for that person to see. Nothing is changed by looking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from billing.purse import Bucket, Kind
from klerai.accounts.models import Person

# Each question is one statement, so that no question being answered meanwhile can come between its parts.
_ACCOUNTS = """
    SELECT account.kind, account.bucket, account.balance, coalesce(total.amount, 0)
    FROM billing_account account
    LEFT JOIN (SELECT entry.account_id, sum(entry.amount) AS amount
               FROM billing_transaction movement JOIN billing_entry entry ON entry.transaction_id = movement.id
               WHERE movement.person_id = %(person_id)s
               GROUP BY entry.account_id) total ON total.account_id = account.id
    WHERE account.person_id = %(person_id)s
    ORDER BY account.kind DESC, account.bucket
"""
_LINES = """
    SELECT count(*), count(*) FILTER (WHERE is_unbalanced), count(*) FILTER (WHERE is_misstated),
           min(created_at) FILTER (WHERE is_unbalanced OR is_misstated)
    FROM (SELECT created_at, daily_after <> daily OR pack_after <> pack AS is_misstated,
                 total <> 0 OR entries = 0 OR entries <> own AS is_unbalanced FROM (
        SELECT movement.created_at, movement.daily_after, movement.pack_after, coalesce(sum(entry.amount), 0) AS total,
               count(entry.id) AS entries,
               count(entry.id) FILTER (WHERE account.person_id = movement.person_id) AS own,
               sum(coalesce(sum(entry.amount) FILTER (WHERE account.bucket = 'daily' AND account.kind = 'wallet'), 0))
                   OVER (ORDER BY movement.number) AS daily,
               sum(coalesce(sum(entry.amount) FILTER (WHERE account.bucket = 'pack' AND account.kind = 'wallet'), 0))
                   OVER (ORDER BY movement.number) AS pack
        FROM billing_transaction movement
        LEFT JOIN billing_entry entry ON entry.transaction_id = movement.id
        LEFT JOIN billing_account account ON account.id = entry.account_id
        WHERE movement.person_id = %(person_id)s
        GROUP BY movement.id
    ) line) judged
"""
_RUNS = """
    SELECT count(*) FROM (
        SELECT movement.run_id
        FROM billing_transaction movement
        LEFT JOIN LATERAL (
            SELECT sum(entry.amount) AS amount FROM billing_entry entry
            JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
            WHERE entry.transaction_id = movement.id
        ) held ON true
        WHERE movement.person_id = %(person_id)s AND movement.run_id IS NOT NULL
        GROUP BY movement.run_id
        HAVING count(*) FILTER (WHERE movement.kind IN ('settle', 'release')) > 1
            OR (bool_or(movement.kind IN ('settle', 'release')) AND coalesce(sum(held.amount), 0) <> 0)
    ) wrong
"""


@dataclass(frozen=True, slots=True)
class WrongBalance:
    """An account that does not stand at what its entries come to."""

    kind: Kind
    bucket: Bucket
    stands: int
    entries: int


@dataclass(frozen=True, slots=True)
class Checkup:
    """What adding up came to.

    `balance` is what the entries leave free to spend. A line is unbalanced when what it takes somewhere does not arrive
    elsewhere, or among somebody else's, and misstated when its balance is not that of the lines before it and its own.
    """

    lines: int
    balance: int
    wrong_balances: tuple[WrongBalance, ...]
    unbalanced: int
    misstated: int
    first_wrong_at: datetime | None
    unresolved: int  # questions that were ended twice, or that ended and still hold credits

    @property
    def is_sound(self) -> bool:
        return not (self.wrong_balances or self.unbalanced or self.misstated or self.unresolved)


def check(person: Person) -> Checkup:
    accounts = [(kind, bucket, int(stands), int(total)) for kind, bucket, stands, total in _rows(_ACCOUNTS, person)]
    ((lines, unbalanced, misstated, first_wrong_at),) = _rows(_LINES, person)
    ((unresolved,),) = _rows(_RUNS, person)
    return Checkup(
        lines=lines,
        balance=sum(entries for kind, _, _, entries in accounts if kind == "wallet"),
        wrong_balances=tuple(WrongBalance(*each) for each in accounts if each[2] != each[3]),
        unbalanced=unbalanced,
        misstated=misstated,
        first_wrong_at=first_wrong_at,
        unresolved=unresolved,
    )


def _rows(query: str, person: Person) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"person_id": person.pk})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
