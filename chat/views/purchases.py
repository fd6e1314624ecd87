"""How a purchase stands, in words. Pages ask our own rows: what was paid for comes by the announcements alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from billing import shop
from billing.shop import Order
from chat.templatetags.page import credits
from klerai.accounts.models import Person

LATE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Purchase:
    """`is_awaited` while its page should look again."""

    heading: str
    sentence: str
    tone: Literal["accent", "caution", "fail"]
    is_awaited: bool


def purchase_of(person: Person, order_id: str, *, now: datetime) -> Purchase | None:
    """What the person bought by this order; None where there is none of theirs."""
    try:
        order = shop.order_of(person, UUID(order_id))
    except ValueError:
        return None
    return None if order is None else _purchase(order, person, now=now)


def _purchase(order: Order, person: Person, *, now: datetime) -> Purchase:
    item = f"{order.price.plan or order.price.pack} for {order.price.dollars}"
    begun = f"{order.created_at.astimezone(person.zone):%-d %B %Y, %H:%M}"
    match order.state:
        case Order.State.PAID if order.credits is None:
            return Purchase(f"{order.price.plan} has begun.", f"{item} a month, since {begun}.", "accent", False)
        case Order.State.PAID:
            words = f"{item}, bought on {begun}. They never expire."
            return Purchase(f"{credits(order.credits or 0)} arrived.", words, "accent", False)
        case Order.State.EXPIRED:
            return Purchase(
                "Nothing was bought.", f"The checkout for {item} is over, and nothing was charged.", "caution", False
            )
        case Order.State.FAILED if order.problem:
            write = f"Write to the people who run this server, with the number {order.pk}."
            words = f"No credits were given for {item}. {write}"
            return Purchase("This payment does not fit its order.", words, "fail", False)
        case Order.State.FAILED:
            return Purchase(
                "The payment did not go through.", f"{item} was not bought. Nothing was charged.", "caution", False
            )
    if now - order.created_at > LATE:
        words = f"We have not heard of a payment for {item} of {begun}. If you paid, what you bought will still arrive."
        return Purchase("Not paid yet.", words, "caution", False)
    what = "Your credits arrive" if order.credits else f"{order.price.plan} begins"
    words = f"{what} in a few seconds, when the payment service has told us. Closing this page loses nothing."
    return Purchase("Thank you.", words, "accent", True)
