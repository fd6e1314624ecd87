"""A person's time zone: the browser's at first, later changed once in 30 days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.test import Client

from klerai.accounts.models import Person
from klerai.accounts.time_zones import Changed, TooSoon, UnknownZone, change_time_zone
from tests.front_door import log_in
from tests.people import make_alice, make_charlie


def test_the_first_login_gives_the_browsers_zone_to_a_person_on_the_default() -> None:
    alice, charlie = make_alice(), make_charlie()
    log_in(Client(), alice.email, time_zone="America/New_York")
    log_in(Client(), charlie.email, time_zone="No/Where")
    assert Person.objects.get(pk=alice.pk).time_zone == "America/New_York"
    assert Person.objects.get(pk=charlie.pk).time_zone == "UTC"
    log_in(Client(), charlie.email, time_zone="Asia/Tokyo")
    assert Person.objects.get(pk=charlie.pk).time_zone == "UTC", "only the first login counts"


def test_the_time_zone_changes_once_in_thirty_days() -> None:
    alice, now = make_alice(), datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert change_time_zone(alice, "Europe/Berlin", now=now) == Changed("Europe/Berlin")
    assert change_time_zone(alice, "Europe/Berlin", now=now) == Changed("Europe/Berlin")
    assert change_time_zone(alice, "Mars/Olympus", now=now) == UnknownZone("Mars/Olympus")
    later = now + timedelta(days=29, hours=23)
    assert change_time_zone(alice, "Asia/Tokyo", now=later) == TooSoon(now + timedelta(days=30))
    assert Person.objects.get(pk=alice.pk).time_zone == "Europe/Berlin"
    assert change_time_zone(alice, "Asia/Tokyo", now=now + timedelta(days=30)) == Changed("Asia/Tokyo")
    assert Person.objects.get(pk=alice.pk).time_zone == "Asia/Tokyo"
