"""People with credits: every test makes its own, so that tests never meet."""

from __future__ import annotations

from datetime import UTC, datetime

from billing import credits
from klerai.accounts.models import Person
from tests.people import make_person, make_unverified

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def newcomer(*, zone: str = "UTC") -> Person:
    """Somebody whose address is not verified, and who therefore gets no daily credits."""
    return _in_zone(make_unverified(), zone)


def verified(*, zone: str = "UTC") -> Person:
    return _in_zone(make_person(), zone)


def with_packs(amount: int) -> Person:
    """Somebody with pack credits only."""
    person = newcomer()
    credits.grant(person, amount=amount, reason="A pack", now=NOON)
    return person


def _in_zone(person: Person, zone: str) -> Person:
    person.time_zone = zone
    person.save(update_fields=["time_zone"])
    return person
