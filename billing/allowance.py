"""The daily credits: opened lazily, on the person's own date, by the first movement or look of that day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from billing import purse as purses
from billing.journal import Draft, append
from billing.plans import Terms, plan_of
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
    """Whether nothing is due: a date that went backwards waits for the day that is already open to end.

    Told by the purse alone. News of a subscription empties its plan, and so do the first moments after that ends.
    """
    today = local_date(person, now=now)
    if today != purse.day or not person.is_verified:
        return today <= purse.day
    return bool(purse.plan) and (purse.plan_until is None or now < purse.plan_until)


def open_day(person: Person, purse: Purse, *, now: datetime) -> Purse:
    """Let the last day's rest expire and grant today's credits, once a date. The purse must be locked.

    Somebody whose address is verified later in the day gets the day's credits then, and somebody who takes a better
    plan is topped up to what that gives. Afterwards `day` is the person's date, or a later one where their date went
    backwards.
    """
    if is_open(person, purse, now=now):
        return purse
    today = local_date(person, now=now)
    granted = purse.granted
    if today > purse.day:
        purse, granted = _expire_rest(purse, now=now), 0
    if not person.is_verified:
        return purses.mark_day(purse, day=today, granted=granted, plan="", plan_until=None)
    terms = plan_of(person, now=now)
    due = _due(terms, purse, granted=granted)
    if due:
        purse = _grant(purse, terms, amount=due, granted=granted, today=today, now=now)
    return purses.mark_day(purse, day=today, granted=granted + due, plan=terms.name, plan_until=terms.until)


def limits_of(person: Person, purse: Purse, *, now: datetime) -> tuple[Limit, ...]:
    """The limits of a purse whose day is open. What is held counts as used until it comes back."""
    terms = plan_of(person, now=now)
    day = Limit(
        name="daily",
        used=purse.granted - purse.daily,
        max=max(terms.daily_credits, purse.granted),  # who went to a smaller plan keeps what the day had brought
        resets_at=_start_of(purse.day + timedelta(days=1), person),
    )
    if terms.period_credits is None or terms.period_end is None:
        return (day,)
    resets_at = terms.period_end.astimezone(person.zone)
    return (day, Limit("period", used=_used(terms, purse), max=terms.period_credits, resets_at=resets_at))


def binding(limits: Sequence[Limit]) -> Limit:
    """The one to name when credits are short: the period's where it keeps the day from being as much as the plan's."""
    day, *others = limits
    return next((limit for limit in others if limit.max - limit.used < day.max - day.used), day)


def _due(terms: Terms, purse: Purse, *, granted: int) -> int:
    due = terms.daily_credits - granted
    if terms.period_credits is not None:
        due = min(due, terms.period_credits - _used(terms, purse) - purse.daily)
    return max(0, due)


def _used(terms: Terms, purse: Purse) -> int:
    """What the period has paid for or holds: daily credits only, since packs are nobody's limit."""
    spent = purse.balances.get(("spent", "daily"), 0) - terms.spent_before
    return spent + purse.balances.get(("held", "daily"), 0)


def _expire_rest(purse: Purse, *, now: datetime) -> Purse:
    rest = purse.daily
    if not rest:
        return purse
    draft = Draft(
        key=f"expire:daily:{purse.person_id}:{purse.day}",
        kind="expire",
        moves={("wallet", "daily"): -rest, ("expired", "daily"): rest},
        day=purse.day,
        reason=f"Unused credits of {purse.day:%-d %B}",
        now=now,
    )
    return append(purse, draft) or purse


def _grant(purse: Purse, terms: Terms, *, amount: int, granted: int, today: date, now: datetime) -> Purse:
    """`granted` is what the day had brought before: a plan may come, and be topped up, in the middle of it."""
    topped_up = f":{granted}" if granted else ""
    why = f", topped up for {terms.title}" if granted else ""
    draft = Draft(
        key=f"grant:daily:{purse.person_id}:{today}:{terms.name}{topped_up}",
        kind="grant",
        moves={("issued", "daily"): -amount, ("wallet", "daily"): amount},
        day=today,
        reason=f"Credits for {today:%-d %B}{why}",
        now=now,
    )
    return append(purse, draft) or purse


def _start_of(day: date, person: Person) -> datetime:
    """The first moment of the date. Where clocks skip midnight that is the moment they do."""
    return datetime.combine(day, time.min, person.zone).astimezone(UTC).astimezone(person.zone)
