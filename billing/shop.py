"""The face of buying: what is offered, the ways to Stripe, and what a person has of it.

Nothing here grants anything: what was paid for arrives by Stripe's announcements alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from billing import inbox, offers, past_due, subscriptions
from billing.customers import stripe_id_of
from billing.errors import AlreadySubscribed, NotOffered, NotSubscribed, StripeRefused, StripeUnavailable
from billing.gateway import Gateway, NewSession, gateway
from billing.offer_rows import Pack, Plan, Price
from billing.past_due import Banner
from billing.plans import FREE
from billing.stripe_rows import Order, StripeCustomer, Subscription
from klerai.accounts.models import Person

__all__ = [
    "Banner",
    "Order",
    "PackOffer",
    "PlanOffer",
    "Subscription",
    "banner_for",
    "cancel_at_period_end",
    "change_plan",
    "has_bought",
    "is_open",
    "is_test",
    "open_portal",
    "order_of",
    "packs_offered",
    "plans_offered",
    "start_checkout",
    "status_of",
    "subscription_of",
]


@dataclass(frozen=True, slots=True)
class PlanOffer:
    """A plan with its price; `cents_per_credit` is what a credit comes to for somebody who uses them all."""

    name: str
    title: str
    daily_credits: int
    period_credits: int | None
    cents: int
    cents_per_credit: float | None


@dataclass(frozen=True, slots=True)
class PackOffer:
    slug: str
    title: str
    credits: int
    cents: int
    cents_per_credit: float


def is_open() -> bool:
    """Whether anything can be bought here."""
    return settings.STRIPE.seller != "nobody"


def is_test() -> bool:
    """Whether buying is a rehearsal: the test checkout, or a test key of Stripe's."""
    return is_open() and not settings.STRIPE.is_live


def plans_offered() -> tuple[PlanOffer, ...]:
    """Free first; without a price a plan other than Free is not offered."""
    offered = offers.on_sale(Plan)
    return tuple(_plan_offer(plan, price) for plan, price in offered if plan.name == FREE or price is not None)


def packs_offered() -> tuple[PackOffer, ...]:
    """The smallest first."""
    return tuple(_pack_offer(pack, price) for pack, price in offers.on_sale(Pack) if price is not None)


def start_checkout(person: Person, *, plan: str | None = None, pack: str | None = None, return_url: str) -> str:
    """Begin to buy a plan or a pack; the address to send the person to.

    They come back to `return_url`, after paying with `?order=` and its id, which `order_of` knows. Raises NotOffered,
    AlreadySubscribed, NothingSold, StripeUnavailable and StripeRefused; in each case nothing was bought.
    """
    item, price = _offered(plan=plan, pack=pack)
    if isinstance(item, Plan) and subscriptions.has_living(person):
        raise AlreadySubscribed(person.pk)
    with gateway() as stripe:
        price_id = offers.selling_id(price)
        customer = _customer(stripe, person)
        credits = item.credits if isinstance(item, Pack) else None
        order = Order.objects.create(person_id=person.pk, price=price, credits=credits, return_url=return_url)
        wanted = NewSession(
            order_id=order.pk,
            customer=customer,
            price_id=price_id,
            is_subscription=isinstance(item, Plan),
            success_url=f"{return_url}{'&' if '?' in return_url else '?'}{urlencode({'order': order.pk})}",
            cancel_url=return_url,
        )
        try:
            session = stripe.create_session(wanted)
        except (StripeUnavailable, StripeRefused) as error:
            Order.objects.filter(pk=order.pk).update(state=Order.State.FAILED, problem=str(error)[:300])
            raise
        Order.objects.filter(pk=order.pk).update(session_id=session.id)
        return session.url


def open_portal(person: Person, *, return_url: str) -> str:
    """Where the person sees invoices, changes the card and cancels. Raises NotSubscribed when they never bought."""
    customer = stripe_id_of(person.pk)
    if not customer:
        raise NotSubscribed(person.pk)
    with gateway() as stripe:
        return stripe.create_portal(customer, return_url=return_url)


def order_of(person: Person, order_id: UUID) -> Order | None:
    """How a purchase stands, by our own rows: what a page polls after the person came back."""
    return Order.objects.filter(pk=order_id, person_id=person.pk).select_related("price__plan", "price__pack").first()


def has_bought(person: Person) -> bool:
    """Whether the payment service knows the person, and so has a portal for them."""
    return bool(stripe_id_of(person.pk))


def subscription_of(person: Person) -> Subscription | None:
    """The one that lives, else the one that ended last."""
    return subscriptions.subscription_of(person)


def status_of(person: Person) -> str:
    """Stripe's word for the person's subscription while it lives; “active” for everybody on Free."""
    subscription = subscriptions.subscription_of(person)
    return subscription.status if subscription is not None and subscription.ended_at is None else "active"


def banner_for(person: Person, *, now: datetime | None = None) -> Banner | None:
    """A sentence for every page while a payment is open."""
    return past_due.banner_for(person, now=now or timezone.now())


def cancel_at_period_end(person: Person, *, wanted: bool = True) -> Subscription:
    """Let the plan end with what is paid, or with `wanted=False` go on after all. Raises NotSubscribed."""
    with _living(person) as (stripe, subscription):
        stripe.cancel_at_period_end(subscription.pk, wanted=wanted)
    return Subscription.objects.select_related("plan").get(pk=subscription.pk)


def change_plan(person: Person, *, plan: str) -> Subscription:
    """Go over to another plan: to a dearer one at once, for the difference; to Free when the period ends.

    Raises NotSubscribed, and NotOffered for a cheaper one, which the portal changes at the end of a period.
    """
    if plan == FREE:
        return cancel_at_period_end(person)
    _, price = _offered(plan=plan)
    with _living(person) as (stripe, subscription):
        facts = stripe.subscription(subscription.pk)
        if facts is None or price.cents <= offers.price_of(subscription.plan).cents:
            raise NotOffered(plan)
        stripe.change_price(subscription.pk, item=facts.item, price_id=offers.selling_id(price))
    return Subscription.objects.select_related("plan").get(pk=subscription.pk)


@contextmanager
def _living(person: Person) -> Iterator[tuple[Gateway, Subscription]]:
    """The person's subscription with its customer locked; afterwards our row says what Stripe says."""
    with gateway() as stripe, inbox.locked_customer(stripe_id_of(person.pk)) as customer:
        subscription = subscriptions.subscription_of(person)
        if customer is None or subscription is None or subscription.ended_at is not None:
            raise NotSubscribed(person.pk)
        yield stripe, subscription
        subscriptions.refresh(customer, stripe, subscription.pk)


def _customer(stripe: Gateway, person: Person) -> str:
    """Who the person is at Stripe, made once."""
    if known := stripe_id_of(person.pk):
        return known
    made = stripe.create_customer(person.pk, email=person.email)
    return StripeCustomer.objects.get_or_create(person_id=person.pk, defaults={"stripe_id": made})[0].stripe_id


def _offered(*, plan: str | None = None, pack: str | None = None) -> tuple[Plan | Pack, Price]:
    if (plan is None) == (pack is None):
        raise NotOffered(f"{plan} and {pack}")
    for_sale: Iterable[tuple[Plan | Pack, Price | None]] = (
        offers.on_sale(Plan) if pack is None else offers.on_sale(Pack)
    )
    for item, price in for_sale:
        if item.pk == (plan or pack) and price is not None:
            return item, price
    raise NotOffered(plan or pack or "")


def _plan_offer(plan: Plan, price: Price | None) -> PlanOffer:
    cents = price.cents if price is not None and plan.name != FREE else 0
    each = cents / plan.period_credits if plan.period_credits and cents else None
    return PlanOffer(plan.name, plan.title, plan.daily_credits, plan.period_credits, cents, each)


def _pack_offer(pack: Pack, price: Price) -> PackOffer:
    return PackOffer(pack.slug, pack.title, pack.credits, price.cents, price.cents / pack.credits)
