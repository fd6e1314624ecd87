"""What is for sale today and for how much, and which of our prices an id of Stripe's stands for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch, Q
from django.utils import timezone

from billing.errors import NotOffered
from billing.offer_rows import Pack, Plan, Price

_LOCAL = "price_local_"
Item = TypeVar("Item", Plan, Pack)


def price_of(item: Plan | Pack, *, today: date | None = None) -> Price:
    """The newest price that has begun. Raises NotOffered when there is none."""
    begun = item.prices.filter(starts_on__lte=today or timezone.now().date())
    price = begun.order_by("-starts_on").first()
    if price is None or not item.is_offered:
        raise NotOffered(item.pk)
    return price


def on_sale(kind: type[Item], *, today: date | None = None) -> list[tuple[Item, Price | None]]:
    """Everything of a kind that is offered, beside the newest price that has begun; None where none has.

    Two queries, however much is on sale.
    """
    begun = Price.objects.filter(starts_on__lte=today or timezone.now().date()).order_by("-starts_on")
    offered = kind.objects.filter(is_offered=True).prefetch_related(Prefetch("prices", begun))
    return [(item, next(iter(item.prices.all()), None)) for item in offered]


def selling_id(price: Price) -> str:
    """The id under which Stripe sells it, which the price keeps from then on. Raises NotOffered when there is none."""
    if settings.STRIPE.seller == "local":
        return f"{_LOCAL}{price.pk}"
    if not price.stripe_price_id:
        name = price.plan_id or price.pack_id or ""
        named = settings.STRIPE.prices.get(name, "")
        if not named or Price.objects.filter(stripe_price_id=named).exists():
            raise NotOffered(name)
        Price.objects.filter(pk=price.pk, stripe_price_id="").update(stripe_price_id=named)
        price.refresh_from_db()
    return price.stripe_price_id


def known_price(price_ids: Iterable[str]) -> Price | None:
    """The price that these ids of one purchase stand for, however old; None unless it is exactly one of ours."""
    match list(price_ids):
        case [id] if settings.STRIPE.seller == "local" and id.startswith(_LOCAL):
            found = Q(pk=UUID(id.removeprefix(_LOCAL)))
        case [id] if id:
            found = Q(stripe_price_id=id)
        case _:
            return None
    return Price.objects.filter(found).select_related("plan", "pack").first()
