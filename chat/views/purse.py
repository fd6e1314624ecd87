"""What a person has left, and what limits it: which limit, how much of it, when it opens again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.utils import timezone

from billing.credits import Balance, Limit, balance_of, binding, limits_of
from chat.templatetags.page import number, time_left
from klerai.accounts.models import Person

Binding = Literal["", "now", "first", "tomorrow"]
_TITLES = {"daily": "Today", "period": "This month"}


@dataclass(frozen=True, slots=True)
class LimitView:
    """A limit of the plan. `binds` says whether it is the one that keeps the person from more, and from when."""

    name: str
    title: str
    used: int
    max: int
    binds: Binding
    resets_at: datetime
    resets: str

    @property
    def left(self) -> int:
        return max(0, self.max - self.used)

    @property
    def label(self) -> str:
        return f"{self.title}: {number(self.used)} of {number(self.max)} credits used"


@dataclass(frozen=True, slots=True)
class PurseView:
    """What is left to spend, beside the limits of the plan: the day's first."""

    left: int
    daily: int
    pack: int
    held: int
    limits: tuple[LimitView, ...]
    zone: str

    @property
    def day(self) -> LimitView:
        return self.limits[0]

    @property
    def binding(self) -> LimitView:
        return next(limit for limit in self.limits if limit.binds in ("now", "first"))

    @property
    def is_from_packs(self) -> bool:
        return self.daily == 0 and self.pack > 0


def purse_of(person: Person) -> PurseView:
    now = timezone.now()
    balance, limits = balance_of(person, now=now), limits_of(person, now=now)
    return PurseView(
        left=balance.available,
        daily=balance.daily,
        pack=balance.pack,
        held=balance.held,
        limits=tuple(_limit_view(limit, limits, balance, person, now=now) for limit in limits),
        zone=person.time_zone,
    )


def _limit_view(
    limit: Limit, limits: tuple[Limit, ...], balance: Balance, person: Person, *, now: datetime
) -> LimitView:
    return LimitView(
        name=limit.name,
        title=_TITLES[limit.name],
        used=limit.used,
        max=limit.max,
        binds=_binds(limit, limits, balance),
        resets_at=limit.resets_at.astimezone(person.zone),
        resets=_resets(limit, person, now=now),
    )


def _binds(limit: Limit, limits: tuple[Limit, ...], balance: Balance) -> Binding:
    day = limits[0]
    if limit == binding(limits):
        return "first" if balance.daily else "now"
    is_short = limit != day and limit.resets_at > day.resets_at and limit.max - limit.used < day.max
    return "tomorrow" if is_short else ""


def _resets(limit: Limit, person: Person, *, now: datetime) -> str:
    at = limit.resets_at.astimezone(person.zone)
    if limit.name == "daily":
        left = time_left(at - now)
        return f"Resets at {at:%H:%M}, {person.time_zone}, in {left}. Unused daily credits do not carry over."
    return f"Resets on {at:%-d %B at %H:%M}, {person.time_zone}, when the billing period ends."
