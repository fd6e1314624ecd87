"""The daily credits: opened lazily, on the person's own date, by the first movement or look of that day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from billing import purse as purses
from billing.journal import Draft, append
from billing.plans import plan_of
from billing.purse import Purse
from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that names itself: max − used is what it still leaves."""

    name: str
    used: int
    max: int
    resets_at: datetime


def local_date(person: Person, *, now: datetime) -> date:
    return now.astimezone(person.zone).date()


def is_open(person: Person, purse: Purse, *, now: datetime) -> bool:
    """Whether nothing is due: a date that went backwards waits for the day that is already open to end."""
    today = local_date(person, now=now)
    return today < purse.day or (today == purse.day and not _due(person, purse))


def open_day(person: Person, purse: Purse, *, now: datetime) -> Purse:
    """Let the last day's rest expire and grant today's credits, once a date. The purse must be locked.

    Somebody whose address is verified later in the day gets the day's credits then. Afterwards `day` is the person's
    date, or a later one where their date went backwards.
    """
    if is_open(person, purse, now=now):
        return purse
    today = local_date(person, now=now)
    granted = purse.granted
    if today > purse.day:
        purse, granted = _expire_rest(purse, now=now), 0
    due = _due(person, purse, granted=granted)
    if due:
        purse = _grant(purse, plan=plan_of(person).name, amount=due, today=today, now=now)
    return purses.mark_day(purse, day=today, granted=granted + due)


def limit_of(person: Person, purse: Purse) -> Limit:
    """The day's limit, of a purse whose day is open. What is held counts as used until it comes back."""
    return Limit(
        name="daily",
        used=purse.granted - purse.daily,
        max=plan_of(person).daily_credits,
        resets_at=_start_of(purse.day + timedelta(days=1), person),
    )


def _due(person: Person, purse: Purse, *, granted: int | None = None) -> int:
    if not person.is_verified:
        return 0
    return max(0, plan_of(person).daily_credits - (purse.granted if granted is None else granted))


def _expire_rest(purse: Purse, *, now: datetime) -> Purse:
    rest = purse.daily
    if not rest:
        return purse
    draft = Draft(
        key=f"expire:daily:{purse.person_id}:{purse.day}",
        kind="expire",
        moves={("wallet", "daily"): -rest, ("expired", "daily"): rest},
        day=purse.day,
        reason=f"Not used on {purse.day}",
        now=now,
    )
    return append(purse, draft) or purse


def _grant(purse: Purse, *, plan: str, amount: int, today: date, now: datetime) -> Purse:
    draft = Draft(
        key=f"grant:daily:{purse.person_id}:{today}:{plan}",
        kind="grant",
        moves={("issued", "daily"): -amount, ("wallet", "daily"): amount},
        day=today,
        reason=f"Daily credits of {today}",
        now=now,
    )
    return append(purse, draft) or purse


def _start_of(day: date, person: Person) -> datetime:
    """The first moment of the date. Where clocks skip midnight that is the moment they do."""
    return datetime.combine(day, time.min, person.zone).astimezone(UTC).astimezone(person.zone)
