"""What a person's plan gives now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from billing.offer_rows import Plan
from billing.stripe_rows import Subscription
from klerai.accounts.models import Person

FREE = "free"
LATE = timedelta(days=1)  # for the news that a subscription was renewed


@dataclass(frozen=True, slots=True)
class Terms:
    """A plan as it counts for one person. `until` is when it ends unless there is news; None for never.

    A limit of a period counts from `period_start`; `spent_before` is what had been spent until then, ever.
    """

    name: str
    title: str
    daily_credits: int
    period_credits: int | None = None
    period_start: datetime | None = None
    period_end: datetime | None = None
    spent_before: int = 0
    until: datetime | None = None


def plan_of(person: Person, *, now: datetime | None = None) -> Terms:
    """The terms that count now: of the subscription that entitles to most, else Free."""
    moment = now or timezone.now()
    subscribed = Subscription.objects.filter(person_id=person.pk, ended_at=None).select_related("plan")
    entitling = [(until, one) for one in subscribed if (until := entitled_until(one)) is not None and moment < until]
    if not entitling:
        return free_terms()
    until, best = max(entitling, key=lambda pair: (pair[1].plan.daily_credits, pair[0]))
    return Terms(
        name=best.plan.name,
        title=best.plan.title,
        daily_credits=best.plan.daily_credits,
        period_credits=best.plan.period_credits,
        period_start=best.period_start,
        period_end=best.period_end,
        spent_before=best.spent_before,
        until=until,
    )


def free_terms() -> Terms:
    """What everybody has who has nothing else."""
    plan = Plan.objects.get(name=FREE)
    return Terms(plan.name, plan.title, plan.daily_credits, plan.period_credits)


def entitled_until(subscription: Subscription) -> datetime | None:
    """How long the plan may be used by what Stripe said last; None for not at all.

    A renewal is waited for a day, since its news may be late, unless the subscription was cancelled. One whose payment
    failed lasts as long as what was paid for.
    """
    if subscription.ended_at is not None:
        return None
    match subscription.status:
        case "active" | "trialing":
            if subscription.cancels_at is not None:
                return min(subscription.cancels_at, subscription.period_end)
            return subscription.period_end + LATE
        case "past_due":
            return subscription.paid_until
        case _:
            return None
