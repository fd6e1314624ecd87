"""What a person's questions cost, by day, by mode and by tool: the same credits, told three ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from billing.usage import Charge, charges_of
from chat.queries import runs_of
from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    daily: int
    pack: int
    questions: int

    @property
    def credits(self) -> int:
        return self.daily + self.pack


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what was spent. `count` is how many questions or calls it was; an empty name is of what was deleted."""

    name: str
    credits: int
    count: int


@dataclass(frozen=True, slots=True)
class Spending:
    """Each of the three adds up to `credits`, which is what the ledger says."""

    days: tuple[Day, ...]
    modes: tuple[Part, ...]
    tools: tuple[Part, ...]
    credits: int
    questions: int


def spending_of(person: Person, *, days: int, now: datetime) -> Spending:
    """The last so many dates of the person's own calendar, today's included."""
    today = now.astimezone(person.zone).date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    charges = charges_of(person, since=datetime.combine(dates[0], time.min, person.zone))
    kept = _kept(person, charges)
    return Spending(
        days=tuple(_days(person, dates, charges)),
        modes=_parts((kept[charge.run_id][0] if charge.run_id in kept else "", charge.credits) for charge in charges),
        tools=_parts(use for charge in charges for use in _uses(charge, kept)),
        credits=sum(charge.credits for charge in charges),
        questions=len(charges),
    )


def _kept(person: Person, charges: Iterable[Charge]) -> dict[UUID, tuple[str, list[dict[str, Any]]]]:
    """The mode and the receipt's lines of each question that was not deleted."""
    runs = runs_of(person).filter(pk__in=[charge.run_id for charge in charges])
    return {key: (mode, lines or []) for key, mode, lines in runs.values_list("pk", "mode", "receipt__lines")}


def _uses(charge: Charge, kept: dict[UUID, tuple[str, list[dict[str, Any]]]]) -> Iterable[tuple[str, int]]:
    """What the question itself and each of its calls came to."""
    if charge.run_id not in kept:
        return [("", charge.credits)]
    lines = kept[charge.run_id][1]
    return [(_tool(line), line["credits"]) for line in lines if line["credits"]]


def _tool(line: dict[str, Any]) -> str:
    item, note = str(line["item"]), str(line.get("note") or "")
    return item if item in ("base", "documentation") else note or item


def _days(person: Person, dates: Iterable[date], charges: Iterable[Charge]) -> Iterable[Day]:
    daily, pack, questions = Counter[date](), Counter[date](), Counter[date]()
    for charge in charges:
        on = charge.at.astimezone(person.zone).date()
        daily[on] += charge.daily
        pack[on] += charge.pack
        questions[on] += 1
    return [Day(each, daily[each], pack[each], questions[each]) for each in dates]


def _parts(uses: Iterable[tuple[str, int]]) -> tuple[Part, ...]:
    """The dearest first."""
    credits, counts = Counter[str](), Counter[str]()
    for name, cost in uses:
        credits[name] += cost
        counts[name] += 1
    return tuple(Part(name, cost, counts[name]) for name, cost in credits.most_common())
