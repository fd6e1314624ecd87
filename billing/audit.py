"""Whether the ledger still keeps its rules, asked of the rows themselves and not of the triggers that guard them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from billing import purse as purses

_UNBALANCED = """
    SELECT movement.key, count(entry.id), coalesce(sum(entry.amount), 0)
    FROM billing_transaction movement LEFT JOIN billing_entry entry ON entry.transaction_id = movement.id
    GROUP BY movement.id HAVING count(entry.id) = 0 OR sum(entry.amount) <> 0
"""
_ACCOUNTS = """
    SELECT account.id, account.person_id, account.kind, account.bucket, account.balance,
           coalesce(total.amount, 0) AS total, account.blocked_at
    FROM billing_account account
    LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM billing_entry GROUP BY account_id) total
      ON total.account_id = account.id
"""
_DISAGREEING = f"SELECT * FROM ({_ACCOUNTS}) stood WHERE balance <> total"
_OVERDRAWN = f"SELECT * FROM ({_ACCOUNTS}) stood WHERE kind IN ('wallet', 'held') AND balance < 0"
_UNRESOLVED = """
    SELECT run.run_id, run.holds, run.resolves, coalesce(held.amount, 0)
    FROM (
        SELECT run_id, count(*) FILTER (WHERE kind = 'hold') AS holds,
               count(*) FILTER (WHERE kind IN ('settle', 'release')) AS resolves
        FROM billing_transaction WHERE run_id IS NOT NULL GROUP BY run_id
    ) run
    LEFT JOIN (
        SELECT movement.run_id, sum(entry.amount) AS amount
        FROM billing_transaction movement
        JOIN billing_entry entry ON entry.transaction_id = movement.id
        JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
        WHERE movement.run_id IS NOT NULL GROUP BY movement.run_id
    ) held ON held.run_id = run.run_id
    WHERE run.resolves > 0 AND (run.holds = 0 OR coalesce(held.amount, 0) <> 0) OR run.resolves > 1
"""
_OUT_OF_STEP = f"""
    SELECT DISTINCT person_id FROM ({_ACCOUNTS}) stood
    WHERE (balance <> total OR kind IN ('wallet', 'held') AND balance < 0) <> (blocked_at IS NOT NULL)
"""
_MARK = f"""
    UPDATE billing_account account
    SET blocked_at = CASE WHEN stood.balance <> stood.total OR stood.kind IN ('wallet', 'held') AND stood.balance < 0
                          THEN coalesce(account.blocked_at, %s) END
    FROM ({_ACCOUNTS} WHERE account.person_id = %s) stood
    WHERE stood.id = account.id
"""
_COUNTS = """
    SELECT (SELECT count(DISTINCT person_id) FROM billing_account), (SELECT count(*) FROM billing_transaction),
           (SELECT count(*) FROM billing_entry), (SELECT count(*) FROM billing_account WHERE blocked_at IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: I1 sums, I2 balances, I3 overdrafts, I4 runs not resolved whole, I5 runs resolved twice."""

    id: str
    what: str  # a sentence
    subject: str


@dataclass(frozen=True, slots=True)
class Counts:
    people: int
    transactions: int
    entries: int
    blocked_accounts: int


def violations() -> list[Violation]:
    """Every broken rule. A run that still holds credits is none: whether it should is for its owner to say."""
    return [*_sums(), *_balances(), *_overdrafts(), *_resolutions()]


def reconcile(*, now: datetime | None = None) -> list[Violation]:
    """Find every broken rule, and block the accounts whose balance is wrong until an audit finds them right again."""
    found = violations()
    for (person_id,) in _rows(_OUT_OF_STEP):
        _mark(person_id, now=now or timezone.now())
    return found


def counts() -> Counts:
    return Counts(*_rows(_COUNTS)[0])


@transaction.atomic
def _mark(person_id: uuid.UUID, *, now: datetime) -> None:
    purses.lock(person_id)
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [now, person_id])


def _sums() -> list[Violation]:
    return [
        Violation("I1", f"{key} sums to {amount}, not to 0." if entries else f"{key} has no entries.", key)
        for key, entries, amount in _rows(_UNBALANCED)
    ]


def _balances() -> list[Violation]:
    return [
        Violation(
            "I2",
            f"The {kind} ({bucket}) of person {person_id} stands at {balance}, but its entries sum to {amount}.",
            str(account_id),
        )
        for account_id, person_id, kind, bucket, balance, amount, _ in _rows(_DISAGREEING)
    ]


def _overdrafts() -> list[Violation]:
    return [
        Violation("I3", f"The {kind} ({bucket}) of person {person_id} stands at {balance}.", str(account_id))
        for account_id, person_id, kind, bucket, balance, *_ in _rows(_OVERDRAWN)
    ]


def _resolutions() -> list[Violation]:
    found: list[Violation] = []
    for run_id, holds, resolves, held in _rows(_UNRESOLVED):
        if not holds:
            found.append(Violation("I4", f"Run {run_id} was resolved without ever holding credits.", str(run_id)))
        elif held:
            found.append(Violation("I4", f"Run {run_id} was resolved and still holds {held} credits.", str(run_id)))
        if resolves > 1:
            found.append(Violation("I5", f"Run {run_id} was resolved {resolves} times.", str(run_id)))
    return found


def _rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
