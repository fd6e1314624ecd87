"""A hold: credits put aside for a run, or for one tool call of it, and what becomes of them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Self

from billing.journal import Draft, Resolution, Written, hold_key, resolve_key
from billing.purse import Purse, Share, Slot


@dataclass(frozen=True, slots=True)
class Held:
    """What was put aside, out of which bucket. `day` is the date the daily part belongs to."""

    run_id: uuid.UUID
    ref: str | None
    daily: int
    pack: int
    day: date

    @classmethod
    def out_of(cls, purse: Purse, *, run_id: uuid.UUID, ref: str | None, amount: int) -> Self:
        """The day's credits first, then packs, whether or not there are enough of them."""
        daily = min(amount, purse.daily)
        return cls(run_id, ref, daily=daily, pack=amount - daily, day=purse.day)

    @classmethod
    def written(cls, first: Written, *, run_id: uuid.UUID, ref: str | None) -> Self:
        """The hold as the ledger has it."""
        if first.day is None:
            raise ValueError(f"The hold of run {run_id} has no day.")
        daily, pack = first.moves.get(("held", "daily"), 0), first.moves.get(("held", "pack"), 0)
        return cls(run_id, ref, daily=daily, pack=pack, day=first.day)

    @property
    def credits(self) -> int:
        return self.daily + self.pack

    def draft(self, *, now: datetime) -> Draft:
        """The transaction that takes it."""
        return Draft(
            key=hold_key(self.run_id, self.ref),
            kind="hold",
            moves={
                ("wallet", "daily"): -self.daily,
                ("held", "daily"): self.daily,
                ("wallet", "pack"): -self.pack,
                ("held", "pack"): self.pack,
            },
            run_id=self.run_id,
            day=self.day,
            now=now,
        )


def resolution(
    shares: Sequence[Share], *, run_id: uuid.UUID, kind: Resolution, credits: int, today: date, now: datetime
) -> Draft:
    """The transaction that charges `credits` to the shares in their order and gives back the rest.

    Daily credits that come back after their date has ended expire.
    """
    moves: Counter[Slot] = Counter()
    for share in shares:
        spent = min(share.amount, credits)
        credits -= spent
        is_over = share.bucket == "daily" and share.day < today
        moves["held", share.bucket] -= share.amount
        moves["spent", share.bucket] += spent
        moves["expired" if is_over else "wallet", share.bucket] += share.amount - spent
    return Draft(key=resolve_key(run_id), kind=kind, moves=moves, run_id=run_id, day=today, now=now)
