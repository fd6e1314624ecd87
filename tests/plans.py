"""People on plans of their own, with whatever limits a test needs."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from billing.models import Plan, Subscription
from klerai.accounts.models import Person


def on_plan(person: Person, **limits: int | None) -> Person:
    """A subscription of a plan of its own, with these limits."""
    plan = Plan.objects.create(
        name=f"plan-{uuid4().hex[:12]}", title="Tiny", daily_credits=50, is_offered=False, **limits
    )
    now = timezone.now()
    end = now + timedelta(days=30)
    Subscription.objects.create(
        stripe_id=f"sub_{uuid4().hex}",
        person_id=person.pk,
        plan=plan,
        status="active",
        started_at=now,
        period_start=now,
        period_end=end,
        paid_until=end,
        applied_at=now,
    )
    return person
