"""People who are short of something: each runs into one limit with the next question."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.utils import timezone

from billing import credits
from billing.credits import Held
from billing.models import Subscription
from billing.pricing import Line
from klerai.accounts.models import Person
from tests.credit_people import verified, with_packs

MONTH = timedelta(days=30)


def spend(person: Person, amount: int, *, now: datetime | None = None) -> None:
    run_id = uuid.uuid4()
    assert isinstance(credits.hold(person, run_id=run_id, amount=amount, now=now), Held)
    credits.settle(person, run_id=run_id, lines=[Line("tool", None, 1, amount, amount)], now=now)


def short_of_today() -> Person:
    """On Free, with 4 of today's 50 left."""
    person = verified(zone="Europe/Berlin")
    spend(person, 46)
    return person


def short_of_the_period() -> Person:
    """On Pro since 25 days, with 3 of the period's 3,000 left."""
    person, begun = verified(zone="Europe/Berlin"), timezone.now() - timedelta(days=25)
    Subscription.objects.create(
        stripe_id=f"sub_{person.pk.hex}",
        person_id=person.pk,
        plan_id="pro",
        status="active",
        started_at=begun,
        period_start=begun,
        period_end=begun + MONTH,
        paid_until=begun + MONTH,
        applied_at=begun,
    )
    for day in range(20):
        spend(person, 147 if day == 19 else 150, now=begun + timedelta(days=day))
    return person


def short_of_a_confirmation() -> Person:
    """Somebody who gets nothing a day until their address is confirmed, with 4 of a pack."""
    return with_packs(4)
