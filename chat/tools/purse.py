"""What tool calls cost, as those who run them ask for it and are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chat.limits import Reached


class Verdict(StrEnum):
    """What a purse says to the price of a call."""

    GRANTED = "granted"
    CEILING = "ceiling"
    BALANCE = "balance"


class CallEnd(StrEnum):
    """How a call ended, for the receipt."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNCONFIRMED = "unconfirmed"
    UNPAID = "unpaid"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that asks for money before it runs."""

    ref: str
    name: str
    category: str


class Purse(Protocol):
    """Pays for calls: holds before they run, and is told how they ended."""

    async def hold(self, wanted: Sequence[Wanted]) -> Sequence[Verdict]:
        """Hold the price of each call, in order."""
        ...

    def close(self, wanted: Wanted, end: CallEnd) -> int:
        """Note how a call ended; the credits it costs if the run is charged."""
        ...

    def note_limit(self, reached: Reached) -> None:
        """Note a limit that keeps further calls from running."""
        ...
