"""Daily credits belong to a date of the person's own calendar, and to no other."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from billing import credits
from billing.credits import Held
from billing.pricing import base_line
from klerai.accounts.models import Person
from tests.credit_people import NOON, newcomer, verified

BERLIN = ZoneInfo("Europe/Berlin")


def take(person: Person, amount: int, *, now: datetime, run_id: uuid.UUID | None = None, ref: str = "") -> uuid.UUID:
    run_id = run_id or uuid.uuid4()
    assert isinstance(credits.hold(person, run_id=run_id, amount=amount, ref=ref or None, now=now), Held)
    return run_id


def balance(person: Person, *, now: datetime) -> tuple[int, int, int]:
    found = credits.balance_of(person, now=now)
    return found.daily, found.pack, found.held


def kinds(person: Person) -> list[str]:
    return [row.kind for row in reversed(credits.entries_of(person))]


def test_unused_credits_expire_and_the_new_day_starts_full() -> None:
    person = verified(zone="Europe/Berlin")
    evening = datetime(2026, 11, 20, 23, 59, 59, tzinfo=BERLIN)
    credits.settle(person, run_id=take(person, 5, now=evening), lines=[base_line()], now=evening)
    assert balance(person, now=evening) == (45, 0, 0)
    assert balance(person, now=evening + timedelta(seconds=1)) == (50, 0, 0)
    assert kinds(person) == ["grant", "hold", "settle", "expire", "grant"]
    assert credits.entries_of(person)[1].expired == 45


def test_days_nobody_looked_at_grant_nothing() -> None:
    person = verified()
    balance(person, now=NOON)
    assert balance(person, now=NOON + timedelta(days=9)) == (50, 0, 0)
    assert kinds(person) == ["grant", "expire", "grant"]


def test_packs_never_expire() -> None:
    person = verified()
    credits.grant(person, amount=500, reason="A pack", now=NOON)
    assert balance(person, now=NOON + timedelta(days=4000)) == (50, 500, 0)


def test_what_is_released_after_midnight_has_expired() -> None:
    person = verified(zone="Europe/Berlin")
    evening = datetime(2026, 11, 20, 23, 59, 59, tzinfo=BERLIN)
    run_id = take(person, 12, now=evening)
    released = credits.release(person, run_id=run_id, now=evening + timedelta(seconds=2))
    assert released.balance_after == 50
    assert balance(person, now=evening + timedelta(seconds=2)) == (50, 0, 0)
    assert credits.entries_of(person)[0].expired == 12


def test_what_is_settled_after_midnight_is_charged_to_the_day_it_was_held_on() -> None:
    person = verified(zone="Europe/Berlin")
    evening = datetime(2026, 11, 20, 23, 59, 59, tzinfo=BERLIN)
    run_id = take(person, 12, now=evening)
    settled = credits.settle(person, run_id=run_id, lines=[base_line()], now=evening + timedelta(seconds=2))
    assert (settled.credits, settled.daily, settled.balance_before, settled.balance_after) == (5, 5, 55, 50)
    assert credits.entries_of(person)[0].expired == 7


def test_a_run_over_midnight_pays_with_yesterdays_credits_first_and_gets_todays_back() -> None:
    person = verified()
    evening = datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)
    morning = evening + timedelta(seconds=2)
    run_id = take(person, 5, now=evening)
    take(person, 10, now=morning, run_id=run_id, ref="q1-t1")
    assert balance(person, now=morning) == (40, 0, 15)
    settled = credits.settle(person, run_id=run_id, lines=[base_line()], now=morning)
    assert settled.daily == 5
    assert balance(person, now=morning) == (50, 0, 0)
    assert credits.entries_of(person)[0].expired == 0


def test_pack_credits_come_back_to_the_packs_also_after_midnight() -> None:
    person = newcomer()
    credits.grant(person, amount=20, reason="A pack", now=NOON)
    run_id = take(person, 20, now=NOON)
    credits.release(person, run_id=run_id, now=NOON + timedelta(days=3))
    assert balance(person, now=NOON + timedelta(days=3)) == (0, 20, 0)


def test_a_date_that_goes_backwards_grants_nothing_and_takes_nothing() -> None:
    person = verified(zone="Pacific/Kiritimati")
    assert balance(person, now=NOON) == (50, 0, 0)  # 21 November there
    credits.settle(person, run_id=take(person, 5, now=NOON), lines=[base_line()], now=NOON)
    person.time_zone = "Pacific/Pago_Pago"  # 20 November there
    assert balance(person, now=NOON) == (45, 0, 0)
    assert balance(person, now=NOON + timedelta(days=1)) == (45, 0, 0)  # the 21st again
    (limit,) = credits.limits_of(person, now=NOON)
    assert (limit.used, limit.resets_at.isoformat()) == (5, "2026-11-22T00:00:00-11:00")
    assert balance(person, now=NOON + timedelta(days=2)) == (50, 0, 0)


def test_moving_around_the_world_never_gives_a_date_twice() -> None:
    person = verified()
    for hour in range(48):
        person.time_zone = ("Pacific/Kiritimati", "UTC", "Pacific/Pago_Pago")[hour % 3]
        balance(person, now=NOON + timedelta(hours=hour))
    days = [row.day for row in credits.entries_of(person, credits.Wanted(kinds=["grant"]), limit=100)]
    assert len(days) == len(set(days))
    assert max(days) - min(days) <= timedelta(days=2)  # type: ignore[type-var, operator]  # grants of a day have one


def test_losing_the_verification_keeps_today_and_gives_nothing_tomorrow() -> None:
    person = verified()
    balance(person, now=NOON)
    person.email_verified_at = None
    assert balance(person, now=NOON) == (50, 0, 0)
    assert balance(person, now=NOON + timedelta(days=1)) == (0, 0, 0)
    person.email_verified_at = NOON
    assert balance(person, now=NOON + timedelta(days=1)) == (50, 0, 0)


@pytest.mark.parametrize(
    ("zone", "now", "resets_at"),
    [
        ("Europe/Berlin", "2026-03-28T22:59:59+00:00", "2026-03-29T00:00:00+01:00"),
        ("Europe/Berlin", "2026-03-28T23:00:00+00:00", "2026-03-30T00:00:00+02:00"),
        ("Europe/Berlin", "2026-10-25T00:30:00+00:00", "2026-10-26T00:00:00+01:00"),
        ("America/New_York", "2026-11-01T12:00:00+00:00", "2026-11-02T00:00:00-05:00"),
        ("Africa/Cairo", "2026-04-23T12:00:00+00:00", "2026-04-24T01:00:00+03:00"),  # midnight is skipped there
        ("Asia/Kathmandu", "2026-02-28T12:00:00+00:00", "2026-03-01T00:00:00+05:45"),
        ("Pacific/Apia", "2011-12-29T12:00:00+00:00", "2011-12-31T00:00:00+14:00"),  # a date is skipped there
        ("UTC", "2027-12-31T23:59:59+00:00", "2028-01-01T00:00:00+00:00"),
        ("UTC", "2028-02-28T23:59:59+00:00", "2028-02-29T00:00:00+00:00"),
    ],
)
def test_the_day_ends_at_the_next_local_midnight(zone: str, now: str, resets_at: str) -> None:
    person = verified(zone=zone)
    (limit,) = credits.limits_of(person, now=datetime.fromisoformat(now))
    assert limit.resets_at.isoformat() == resets_at
    credits.settle(
        person,
        run_id=take(person, 5, now=datetime.fromisoformat(now)),
        lines=[base_line()],
        now=datetime.fromisoformat(now),
    )
    end = limit.resets_at.astimezone(UTC)
    assert balance(person, now=end - timedelta(seconds=1)) == (45, 0, 0)
    assert balance(person, now=end) == (50, 0, 0)


def test_a_hold_remembers_the_date_its_credits_belong_to() -> None:
    person = verified(zone="Pacific/Kiritimati")
    held = credits.hold(person, run_id=uuid.uuid4(), amount=5, now=NOON)
    assert isinstance(held, Held)
    assert held.day == date(2026, 11, 21)
