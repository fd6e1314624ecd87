"""What a plan gives."""

from __future__ import annotations

from dataclasses import dataclass

from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    daily_credits: int
    period_credits: int | None  # None: no limit beside the day's


FREE = Plan(name="free", daily_credits=50, period_credits=None)


def plan_of(person: Person) -> Plan:
    """The plan that counts now; everybody is on Free until a subscription says otherwise."""
    return FREE
