"""A person's time zone: taken from the browser at first, later changed once in 30 days."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from klerai.accounts.models import Person

DEFAULT = "UTC"
CHANGES_EVERY = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Changed:
    name: str


@dataclass(frozen=True, slots=True)
class UnknownZone:
    name: str


@dataclass(frozen=True, slots=True)
class TooSoon:
    """It moves the daily reset, so not yet: `again_at` is when."""

    again_at: datetime


def zone_or_default(name: str) -> str:
    """What a browser says, or UTC when it says nothing sensible: nobody can correct their browser."""
    return name if name in zoneinfo.available_timezones() else DEFAULT


@transaction.atomic
def change_time_zone(person: Person, name: str, *, now: datetime) -> Changed | UnknownZone | TooSoon:
    """Changing to the zone the person has already costs nothing."""
    if name not in zoneinfo.available_timezones():
        return UnknownZone(name)
    current = Person.objects.select_for_update().get(pk=person.pk)
    if current.time_zone == name:
        return Changed(name)
    changed_at = current.time_zone_changed_at
    if changed_at is not None and now < changed_at + CHANGES_EVERY:
        return TooSoon(changed_at + CHANGES_EVERY)
    current.time_zone, current.time_zone_changed_at = name, now
    current.save(update_fields=["time_zone", "time_zone_changed_at"])
    person.time_zone, person.time_zone_changed_at = name, now
    return Changed(name)


def take_first_zone(person: Person, name: str) -> None:
    """At the first login, before anything was granted by the day, a person on the default takes the browser's."""
    if person.last_login is None and person.time_zone == DEFAULT:
        person.time_zone = zone_or_default(name)
        Person.objects.filter(pk=person.pk, time_zone=DEFAULT).update(time_zone=person.time_zone)
