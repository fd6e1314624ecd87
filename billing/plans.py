"""What a person's plan gives now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone

from billing.offer_rows import Plan
from billing.stripe_rows import Subscription
from klerai.accounts.models import Person
from klerai.accounts.request_limits import KEY, PLAN, RequestLimit

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
    most_documents: int | None = None
    most_bytes: int | None = None


def plan_of(person: Person, *, now: datetime | None = None) -> Terms:
    """The terms that count now: of the subscription that entitles to most, else Free."""
    best = _entitling(person, now or timezone.now())
    if best is None:
        return free_terms()
    return replace(
        _terms(best.plan),
        period_start=best.period_start,
        period_end=best.period_end,
        spent_before=best.spent_before,
        until=entitled_until(best),
    )


def free_terms() -> Terms:
    """What everybody has who has nothing else."""
    return _terms(Plan.objects.get(name=FREE))


def request_limits_of(person: Person) -> tuple[RequestLimit, ...]:
    """How many requests the person's programs may send, by the plan that counts now."""
    best = _entitling(person, timezone.now())
    plan = best.plan if best is not None else Plan.objects.get(name=FREE)
    limits = ((KEY, plan.key_requests_per_minute, 60), (PLAN, plan.all_requests_per_hour, 3600))
    return tuple(RequestLimit(name, most, seconds) for name, most, seconds in limits if most is not None)


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


def _entitling(person: Person, moment: datetime) -> Subscription | None:
    """The subscription that gives most now."""
    subscribed = Subscription.objects.filter(person_id=person.pk, ended_at=None).select_related("plan")
    entitling = [(until, one) for one in subscribed if (until := entitled_until(one)) is not None and moment < until]
    _, best = max(entitling, key=lambda pair: (pair[1].plan.daily_credits, pair[0]), default=(None, None))
    return best


def _terms(plan: Plan) -> Terms:
    return Terms(
        plan.name,
        plan.title,
        plan.daily_credits,
        plan.period_credits,
        most_documents=plan.most_documents,
        most_bytes=plan.most_bytes,
    )
