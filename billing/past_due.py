"""A payment that failed: the banner while it is so, and three mails, each sent once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urljoin

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string

from billing.plans import entitled_until
from billing.stripe_rows import PastDueNotice, Subscription
from klerai.accounts.models import Person

PORTAL_PATH = "/billing/portal/"
THIRD_DAY = timedelta(days=3)
_UNPAID = ("past_due", "unpaid")
_SUBJECTS = {
    PastDueNotice.Kind.FIRST: "Your payment for {plan} failed",
    PastDueNotice.Kind.THIRD_DAY: "Your payment for {plan} is still open",
    PastDueNotice.Kind.END: "{plan} has ended: the payment never arrived",
}


@dataclass(frozen=True, slots=True)
class Banner:
    """A sentence for every page, with where to go."""

    text: str
    url: str
    link: str


def banner_for(person: Person, *, now: datetime) -> Banner | None:
    """What somebody has to know whose payment failed; None for everybody else."""
    unpaid = Subscription.objects.filter(person_id=person.pk, ended_at=None, status__in=_UNPAID).select_related("plan")
    subscription = unpaid.order_by("started_at").first()
    if subscription is None:
        return None
    plan, until = subscription.plan.title, entitled_until(subscription)
    if until is not None and now < until:
        day = until.astimezone(person.zone)
        text = f"Your last payment failed. {plan} stays until {day:%-d %B}, which is paid for; then it ends."
    else:
        text = (
            f"Your last payment failed, and what was paid for is used up. {plan} comes back when the payment arrives."
        )
    return Banner(text, PORTAL_PATH, "Update your card")


@transaction.atomic
def notify(subscription: Subscription, *, now: datetime) -> None:
    """Send the mail that is due, once: it is queued in the transaction that notes it."""
    kind, since = _due(subscription, now=now), subscription.unpaid_since
    person = Person.objects.filter(pk=subscription.person_id).first()
    if kind is None or since is None or person is None:
        return
    _, is_new = PastDueNotice.objects.get_or_create(subscription=subscription, unpaid_since=since, kind=kind)
    if is_new:
        _mail(person, subscription, kind)


def notify_all(*, now: datetime) -> None:
    """What time alone makes due."""
    for subscription in Subscription.objects.filter(ended_at=None, status="past_due").select_related("plan"):
        notify(subscription, now=now)


def _due(subscription: Subscription, *, now: datetime) -> PastDueNotice.Kind | None:
    since = subscription.unpaid_since
    if since is None:
        return None
    if subscription.ended_at is not None or subscription.status == "unpaid":
        was_told = subscription.notices.filter(unpaid_since=since).exists()
        return PastDueNotice.Kind.END if was_told else None
    if subscription.status != "past_due":
        return None
    return PastDueNotice.Kind.THIRD_DAY if now >= since + THIRD_DAY else PastDueNotice.Kind.FIRST


def _mail(person: Person, subscription: Subscription, kind: PastDueNotice.Kind) -> None:
    context = {
        "plan": subscription.plan.title,
        "until": subscription.paid_until.astimezone(person.zone),
        "portal": urljoin(settings.BASE_URL, PORTAL_PATH),
        "kind": kind.value,
    }
    EmailMessage(
        subject=_SUBJECTS[kind].format(plan=subscription.plan.title),
        body=render_to_string("billing/past_due_mail.txt", context),
        to=[person.email],
    ).send()
