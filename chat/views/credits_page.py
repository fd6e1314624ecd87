"""What is left, what limits it, where it went, and what can be bought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing import shop
from billing.credits import entries_of
from billing.money import in_dollars
from billing.packs import Lot, lots_of
from billing.plans import Terms, plan_of
from billing.shop import PlanOffer, Subscription
from chat.ledger_check import verify
from chat.spending import spending_of
from chat.views.frame import framed, person_of
from chat.views.ledger_filter import SHOWN
from chat.views.ledger_page import lines_of
from chat.views.outlook import outlook_for
from chat.views.purchases import purchase_of
from chat.views.sidebar import sidebar_of
from chat.views.usage_chart import chart_of, modes_of, tools_of
from chat.views.verdict_words import verdict_words
from klerai.accounts.models import Person

LEDGER_ROWS = 10
USAGE_DAYS = 14
_USAGES = {"day": "By day", "mode": "By mode", "tool": "By tool"}


@dataclass(frozen=True, slots=True)
class Packs:
    """Packs and gifts of which something is left; `granted` is what these were when they came."""

    lots: tuple[Lot, ...]
    left: int
    granted: int

    @property
    def label(self) -> str:
        return f"Packs: {self.left:,} of {self.granted:,} credits left"


@dataclass(frozen=True, slots=True)
class PlanView:
    """The person's plan, and what can be done about it."""

    terms: Terms
    price: str
    subscription: Subscription | None
    has_bought: bool
    better: tuple[PlanOffer, ...]

    @property
    def is_unpaid(self) -> bool:
        return self.subscription is not None and self.subscription.unpaid_since is not None

    @property
    def ends_at(self) -> datetime | None:
        return self.subscription.cancels_at if self.subscription else None


@never_cache
@login_required
@require_safe
def billing(request: HttpRequest) -> HttpResponse:
    person, now = person_of(request), timezone.now()
    beside = sidebar_of(person)
    purse = beside.purse
    rows = entries_of(person, SHOWN, limit=LEDGER_ROWS + 1)
    plan = _plan(person)
    context = {
        "purse": purse,
        "outlook": outlook_for(person, purse, now=now),
        "packs": _packs(lots_of(person)),
        "plan": plan,
        "ceiling": person.ceiling_credits,
        "for_sale": shop.packs_offered() if shop.is_open() else (),
        "is_rehearsal": shop.is_test(),
        "purchase": purchase_of(person, request.GET.get("order", ""), now=now),
        "ledger": lines_of(person, rows[:LEDGER_ROWS]),
        "has_more": len(rows) > LEDGER_ROWS,
        "verdict": verdict_words(verify(person), person) if "verify" in request.GET else None,
        **_usage(person, request.GET.get("usage", ""), plan.terms, now=now),
    }
    return framed(request, "billing/overview.html", context, sidebar=beside)


def _packs(lots: Sequence[Lot]) -> Packs:
    lasting = tuple(lot for lot in lots if lot.left)
    return Packs(
        lots=lasting,
        left=sum(lot.left for lot in lasting),
        granted=sum(lot.granted - lot.taken_back for lot in lasting),
    )


def _plan(person: Person) -> PlanView:
    terms, offers = plan_of(person), shop.plans_offered()
    subscription = shop.subscription_of(person)
    living = subscription if subscription is not None and subscription.ended_at is None else None
    by_name = {offer.name: offer for offer in offers}
    mine, paid_for = by_name.get(terms.name), by_name.get(living.plan_id if living else terms.name)
    cents = paid_for.cents if paid_for else 0
    return PlanView(
        terms=terms,
        price=in_dollars(mine.cents) if mine and mine.cents else "",
        subscription=living,
        has_bought=shop.has_bought(person),
        better=tuple(offer for offer in offers if offer.cents > cents) if shop.is_open() else (),
    )


def _usage(person: Person, by: str, terms: Terms, *, now: datetime) -> dict[str, Any]:
    spending = spending_of(person, days=USAGE_DAYS, now=now)
    chosen = by if by in _USAGES else "day"
    return {
        "spending": spending,
        "usage": chosen,
        "usages": _USAGES.items(),
        "chart": chart_of(spending, daily_credits=terms.daily_credits),
        "parts": modes_of(spending) if chosen == "mode" else tools_of(spending),
    }


urlpatterns = [path("billing/", billing, name="billing")]
