"""The face of billing: what a person has, and how a run takes, pays and gives back credits.

Every function may stand inside a larger transaction of the caller and commits nothing by itself. `now` is the clock;
left out it is the real one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from billing import allowance, journal, statement
from billing import purse as purses
from billing.allowance import Limit, binding, is_open, open_day
from billing.errors import (
    AccountBlocked,
    AlreadyReleased,
    AlreadySettled,
    BadAmount,
    ForeignRun,
    NoReason,
    NotEnoughHeld,
    NothingHeld,
)
from billing.holding import Held, resolution
from billing.journal import Draft, Resolution
from billing.models import MOST_PER_ENTRY
from billing.pricing import Line, total
from billing.purse import Moves, Purse
from billing.statement import EVERYTHING, LedgerRow, Wanted
from klerai.accounts.models import Person

__all__ = [
    "LONGEST_REASON",
    "MOST_PER_GRANT",
    "Balance",
    "Granted",
    "Held",
    "LedgerRow",
    "Limit",
    "Settlement",
    "Shortfall",
    "Wanted",
    "balance_of",
    "binding",
    "entries_of",
    "grant",
    "held_for",
    "hold",
    "limits_of",
    "open_holds",
    "release",
    "settle",
    "settlement_of",
    "shortfall_of",
]

MOST_PER_GRANT = 100_000
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Balance:
    daily: int
    pack: int
    held: int

    @property
    def available(self) -> int:
        """What can be spent now: `credits_remaining` of the API."""
        return self.daily + self.pack


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Too few credits for what was asked. Nothing was taken."""

    balance: int
    required: int
    limit: Limit
    held: int = 0  # for questions that are being answered: some of it may come back

    @property
    def resets_at(self) -> datetime:
        return self.limit.resets_at


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a run ended in the ledger.

    `balance_after` is what was free to spend right after it, `balance_before` is that plus `credits`: what would
    have been free had the run not been charged.
    """

    credits: int
    daily: int
    pack: int
    balance_after: int

    @property
    def balance_before(self) -> int:
        return self.balance_after + self.credits


@dataclass(frozen=True, slots=True)
class Granted:
    balance: Balance
    is_new: bool  # False when the key had been used: nothing was added this time


def balance_of(person: Person, *, now: datetime | None = None) -> Balance:
    """What the person has now; the first look of a day opens that day."""
    return _balance(_opened(person, now=now or timezone.now()))


def limits_of(person: Person, *, now: datetime | None = None) -> tuple[Limit, ...]:
    """Every limit on the person's credits: the day's first, then the period's where the plan has one."""
    moment = now or timezone.now()
    return allowance.limits_of(person, _opened(person, now=moment), now=moment)


def shortfall_of(person: Person, *, required: int, now: datetime | None = None) -> Shortfall:
    """What to say where `required` credits are more than there are: the balance, and the limit that keeps it so low."""
    moment = now or timezone.now()
    return _shortfall(person, _opened(person, now=moment), required=required, now=moment)


def hold(
    person: Person, *, run_id: uuid.UUID, amount: int, ref: str | None = None, now: datetime | None = None
) -> Held | Shortfall:
    """Put credits aside for a run, or for one tool call of it (`ref`): the day's first, then packs.

    The same run and ref again answer the first hold, whatever the amount. Raises AccountBlocked, and AlreadySettled
    or AlreadyReleased for a new hold on a run that has ended.
    """
    _check(amount, at_most=MOST_PER_ENTRY)
    moment = now or timezone.now()
    with transaction.atomic(savepoint=False):
        purse = open_day(person, purses.lock(person.id), now=moment)
        held = Held.out_of(purse, run_id=run_id, ref=ref, amount=amount)
        is_covered = held.pack <= purse.pack
        if is_covered and not purse.is_blocked and journal.append(purse, held.draft(now=moment)):
            return held
        first = journal.find(journal.hold_key(run_id, ref), person_id=person.id)
        ended = journal.find(journal.resolve_key(run_id), person_id=person.id)
    if first is not None:
        return Held.written(first, run_id=run_id, ref=ref)
    if ended is not None:
        raise AlreadySettled(run_id) if ended.kind == "settle" else AlreadyReleased(run_id)
    if purse.is_blocked:
        raise AccountBlocked(person.id)
    if is_covered:
        raise ForeignRun(run_id)
    return _shortfall(person, purse, required=amount, now=moment)


def settle(person: Person, *, run_id: uuid.UUID, lines: Sequence[Line], now: datetime | None = None) -> Settlement:
    """Charge exactly the sum of the lines and give back the rest of what the run holds.

    A run is resolved once: settling again answers the first settlement, after a release it raises AlreadyReleased.
    Daily credits that come back after their day has ended expire.
    """
    for line in lines:
        _check(line.credits, at_least=0, at_most=MOST_PER_ENTRY)
    credits = total(lines)
    return _resolve(person, run_id=run_id, kind="settle", credits=credits, now=now or timezone.now())


def release(person: Person, *, run_id: uuid.UUID, now: datetime | None = None) -> Settlement:
    """Give back everything the run holds. Releasing again answers the first release; after a settle it raises."""
    return _resolve(person, run_id=run_id, kind="release", credits=0, now=now or timezone.now())


def settlement_of(person: Person, *, run_id: uuid.UUID) -> Settlement | None:
    """How the run ended in the ledger; None while it has not."""
    written = journal.find(journal.resolve_key(run_id), person_id=person.id)
    if written is None:
        return None
    return _settlement(written.moves, balance_after=written.daily_after + written.pack_after)


def held_for(run_id: uuid.UUID) -> int:
    """What the run holds now: 0 once it is resolved."""
    return journal.held_for(run_id)


def open_holds(*, before: datetime | None = None) -> tuple[uuid.UUID, ...]:
    """The runs that hold credits and are not resolved, oldest first; with `before` those that began before it."""
    return journal.open_holds(before)


def grant(
    person: Person,
    *,
    amount: int,
    reason: str,
    by: uuid.UUID | None = None,
    key: str | None = None,
    now: datetime | None = None,
) -> Granted:
    """Add pack credits, which never expire. With a `key` the same grant happens once, however often it is asked."""
    _check(amount, at_most=MOST_PER_GRANT)
    if not reason.strip():
        raise NoReason(person.id)
    moment = now or timezone.now()
    with transaction.atomic(savepoint=False):
        purse = open_day(person, purses.lock(person.id), now=moment)
        draft = Draft(
            key=key or f"grant:admin:{uuid.uuid4()}",
            kind="grant",
            moves={("issued", "pack"): -amount, ("wallet", "pack"): amount},
            reason=reason,
            created_by=by,
            now=moment,
        )
        after = journal.append(purse, draft)
    return Granted(balance=_balance(after or purse), is_new=after is not None)


def entries_of(
    person: Person, wanted: Wanted = EVERYTHING, *, before: int | None = None, limit: int = 20
) -> tuple[LedgerRow, ...]:
    """The person's ledger, newest first; `before` is the `number` of the last row already read."""
    return statement.rows_of(person.id, wanted, before=before, limit=limit)


def owned_after(person: Person, rows: Sequence[LedgerRow]) -> dict[int, int]:
    """What the person owned right after each row, by its number: what was free and what was held, together.

    It changes by exactly what each row says, also while several questions were being answered.
    """
    held = statement.held_after(person.id, [row.number for row in rows])
    return {row.number: row.balance_after + held[row.number] for row in rows}


def _opened(person: Person, *, now: datetime) -> Purse:
    """The purse with its day open; nothing is locked or written when it already is."""
    purse = purses.read(person.id)
    if is_open(person, purse, now=now):
        return purse
    with transaction.atomic(savepoint=False):
        return open_day(person, purses.lock(person.id), now=now)


def _resolve(person: Person, *, run_id: uuid.UUID, kind: Resolution, credits: int, now: datetime) -> Settlement:
    with transaction.atomic(savepoint=False):
        locked, shares = purses.lock_with_holds(person.id, run_id=run_id)
        purse = open_day(person, locked, now=now)
        held = sum(share.amount for share in shares)
        draft = resolution(shares, run_id=run_id, kind=kind, credits=credits, today=purse.day, now=now)
        if held and credits <= held and (after := journal.append(purse, draft)):
            return _settlement(draft.moves, balance_after=after.daily + after.pack)
        first = journal.find(draft.key, person_id=person.id)
    if first is None:
        raise NotEnoughHeld(run_id, held=held, credits=credits) if held else NothingHeld(run_id)
    if first.kind != kind:
        raise AlreadySettled(run_id) if first.kind == "settle" else AlreadyReleased(run_id)
    return _settlement(first.moves, balance_after=first.daily_after + first.pack_after)


def _shortfall(person: Person, purse: Purse, *, required: int, now: datetime) -> Shortfall:
    limit = allowance.binding(allowance.limits_of(person, purse, now=now))
    return Shortfall(balance=purse.daily + purse.pack, required=required, limit=limit, held=purse.held)


def _balance(purse: Purse) -> Balance:
    return Balance(daily=purse.daily, pack=purse.pack, held=purse.held)


def _settlement(moves: Moves, *, balance_after: int) -> Settlement:
    daily, pack = moves.get(("spent", "daily"), 0), moves.get(("spent", "pack"), 0)
    return Settlement(credits=daily + pack, daily=daily, pack=pack, balance_after=balance_after)


def _check(amount: int, *, at_least: int = 1, at_most: int) -> None:
    if type(amount) is not int or not at_least <= amount <= at_most:
        raise BadAmount(amount, at_least=at_least, at_most=at_most)
