"""What is for sale today and for how much, and which of our prices an id of Stripe's stands for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from billing.errors import NotOffered
from billing.offer_rows import Pack, Plan, Price

_LOCAL = "price_local_"


def price_of(item: Plan | Pack, *, today: date | None = None) -> Price:
    """The newest price that has begun. Raises NotOffered when there is none."""
    begun = item.prices.filter(starts_on__lte=today or timezone.now().date())
    price = begun.order_by("-starts_on").first()
    if price is None or not item.is_offered:
        raise NotOffered(item.pk)
    return price


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
