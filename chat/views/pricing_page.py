"""The prices, for everybody: what plans and packs cost, what a credit then comes to, and what a question takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing import pricing, shop
from billing.plans import free_terms, plan_of
from billing.pricing import PRICE_LIST, PriceLabel
from billing.shop import PackOffer, PlanOffer
from chat.tools.registry import discover
from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class PlanCard:
    """A plan as it is shown. `days` is how soon a period's credits are used up by whoever uses every day's; `month` is
    what such a person has in 30 days.
    """

    offer: PlanOffer
    questions: int
    days: int | None
    month: int
    cents_half_used: float | None
    day_cents: float | None
    is_mine: bool
    is_less: bool


@dataclass(frozen=True, slots=True)
class PackCard:
    """A pack as it is shown; `times` says how much dearer its credits are than those of a plan."""

    offer: PackOffer
    times: int


@dataclass(frozen=True, slots=True)
class Example:
    """What a question of a kind costs, and what that is in cents of the best plan and of the first pack."""

    words: str
    credits: int
    cents: tuple[float, ...]


@never_cache
@require_safe
def prices(request: HttpRequest) -> HttpResponse:
    person = request.user if isinstance(request.user, Person) else None
    free = free_terms()
    mine = plan_of(person) if person is not None else free
    is_sold = shop.is_open()
    plans = [offer for offer in shop.plans_offered() if is_sold or not offer.cents]
    packs = shop.packs_offered() if is_sold else ()
    rates = _rates(plans, packs)
    charged = prices_charged()
    context = {
        "plans": [_plan_card(offer, mine.name, mine.daily_credits) for offer in plans],
        "packs": [PackCard(pack, _times(pack, plans)) for pack in packs],
        "cheapest": rates[0][0] if rates else "",
        "free_daily": free.daily_credits,
        "prices": charged,
        "ceiling": person.ceiling_credits if person is not None else Person._meta.get_field("ceiling_credits").default,
        "examples": list(_examples({price.item for price in charged}, [cents for _, cents in rates])),
        "rates": [title for title, _ in rates],
        "is_sold": is_sold,
        "is_rehearsal": shop.is_test(),
        "with_tax": settings.STRIPE.with_tax,
        "is_mine": person is not None,
        "signup": settings.SIGNUP,
    }
    return render(request, "pricing.html", context)


def prices_charged() -> list[PriceLabel]:
    """What can be charged on this server: no price stands here for a tool that is not."""
    sold = {"base", "tool", *(tool.category for tool in discover().values())}
    return [price for price in PRICE_LIST if price.item in sold]


def _plan_card(offer: PlanOffer, mine: str, daily_credits: int) -> PlanCard:
    period = offer.period_credits
    return PlanCard(
        offer,
        questions=offer.daily_credits // pricing.BASE,
        days=period // offer.daily_credits if period else None,
        month=30 * offer.daily_credits,
        cents_half_used=2 * offer.cents_per_credit if offer.cents_per_credit else None,
        day_cents=offer.daily_credits * offer.cents_per_credit if offer.cents_per_credit else None,
        is_mine=offer.name == mine,
        is_less=offer.daily_credits < daily_credits,
    )


def _times(pack: PackOffer, plans: Sequence[PlanOffer]) -> int:
    each = next((plan.cents_per_credit for plan in plans if plan.cents_per_credit), None)
    return round(pack.cents_per_credit / each) if each else 0


def _rates(plans: Sequence[PlanOffer], packs: Sequence[PackOffer]) -> list[tuple[str, float]]:
    """What a credit comes to, by each plan that is paid for and by the first pack."""
    paid = [(plan.title, plan.cents_per_credit) for plan in plans if plan.cents_per_credit]
    return paid + [("a pack", pack.cents_per_credit) for pack in packs[:1]]


def _examples(charged: set[str], rates: Sequence[float]) -> Iterator[Example]:
    base, tool = pricing.BASE, pricing.TOOL
    shown = [("A plain question", base), ("One that searches your documents", base + tool)]
    if "documentation" in charged:
        shown.append(("One that reads documentation", base + pricing.DOCUMENTATION))
    if "documentation" in charged and "github" in charged:
        shown.append(("Documentation and two GitHub calls", base + pricing.DOCUMENTATION + 2 * pricing.GITHUB))
    elif "github" in charged:
        shown.append(("Two GitHub calls", base + 2 * pricing.GITHUB))
    for words, credits in shown:
        yield Example(words, credits, tuple(credits * rate for rate in rates))


urlpatterns = [path("pricing/", prices, name="pricing")]
