"""The test checkout in the place of Stripe: the same questions, answered out of a table of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urljoin
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from billing import offers
from billing.errors import StripeRefused
from billing.gateway import NewSession
from billing.local_rows import LocalObject
from billing.stripe_objects import EventFacts, PaymentFacts, ReversalFacts, SessionFacts, SubscriptionFacts

CHECKOUT_PATH, PORTAL_PATH = "/local/checkout/", "/local/portal/"


class LocalStripe:
    """Objects of Stripe's form, so that all that reads Stripe's reads these."""

    def create_customer(self, person_id: UUID, *, email: str) -> str:
        return f"cus_local_{person_id.hex}"

    def create_session(self, wanted: NewSession) -> SessionFacts:
        price = offers.known_price([wanted.price_id])
        if price is None:
            raise StripeRefused(f"No such price: {wanted.price_id}")
        content = {
            "id": f"cs_local_{wanted.order_id.hex}",
            "object": "checkout.session",
            "mode": "subscription" if wanted.is_subscription else "payment",
            "status": "open",
            "payment_status": "unpaid",
            "url": urljoin(settings.BASE_URL, f"{CHECKOUT_PATH}{wanted.order_id}/"),
            "customer": wanted.customer,
            "client_reference_id": str(wanted.order_id),
            "currency": price.currency,
            "amount_subtotal": price.cents,
            "line_items": {"data": [{"price": {"id": wanted.price_id}, "quantity": 1}]},
            "success_url": wanted.success_url,
            "cancel_url": wanted.cancel_url,
            "livemode": False,
        }
        kept, _ = LocalObject.objects.get_or_create(
            id=content["id"], defaults={"kind": "session", "customer_id": wanted.customer, "content": content}
        )
        return SessionFacts.of(kept.content)

    def expire_session(self, id: str) -> None:
        if LocalObject.objects.filter(kind="session", pk=id, content__status="open").exists():
            change(id, status="expired")

    def create_portal(self, customer: str, *, return_url: str) -> str:
        return urljoin(settings.BASE_URL, f"{PORTAL_PATH}?{urlencode({'back': return_url})}")

    def session(self, id: str) -> SessionFacts | None:
        found = _content("session", id)
        return None if found is None else SessionFacts.of(found)

    def session_of_payment(self, id: str) -> str:
        sessions = LocalObject.objects.filter(kind="session", content__payment_intent=id)
        return sessions.values_list("pk", flat=True).first() or ""

    def subscription(self, id: str) -> SubscriptionFacts | None:
        found = _content("subscription", id)
        return None if found is None else SubscriptionFacts.of(found)

    def payment(self, id: str) -> PaymentFacts | None:
        found = _content("payment_intent", id)
        refunds = [row.content for row in LocalObject.objects.filter(kind="refund", content__payment_intent=id)]
        return None if found is None else PaymentFacts.of(found, refunds=refunds, disputes=[])

    def cancel_now(self, subscription: str) -> None:
        now = int(timezone.now().timestamp())
        change(subscription, status="canceled", ended_at=now)

    def cancel_at_period_end(self, subscription: str, *, wanted: bool) -> None:
        change(subscription, cancel_at_period_end=wanted)

    def change_price(self, subscription: str, *, item: str, price_id: str) -> None:
        items = LocalObject.objects.get(pk=subscription).content["items"]["data"]
        change(subscription, items={"data": [{**one, "price": {"id": price_id}} for one in items]})

    def subscriptions_since(self, moment: datetime) -> Iterator[SubscriptionFacts]:
        return (SubscriptionFacts.of(row.content) for row in _since("subscription", moment))

    def sessions_since(self, moment: datetime) -> Iterator[SessionFacts]:
        return (SessionFacts.of(row.content) for row in _since("session", moment))

    def reversals_since(self, moment: datetime) -> Iterator[tuple[str, ReversalFacts]]:
        return (
            (row.content["payment_intent"], ReversalFacts.of_refund(row.content)) for row in _since("refund", moment)
        )

    def undelivered_events(self, since: datetime) -> Iterator[EventFacts]:
        return iter(())  # they are announced in the transaction that makes them


def keep(kind: str, customer: str, content: dict[str, Any]) -> dict[str, Any]:
    """Write a new object down."""
    return LocalObject.objects.create(id=content["id"], kind=kind, customer_id=customer, content=content).content


def change(id: str, **fields: Any) -> dict[str, Any]:
    """Change some fields of an object; what it is then."""
    row = LocalObject.objects.select_for_update().get(pk=id)
    row.content |= fields
    row.save(update_fields=["content"])
    return row.content


def _content(kind: str, id: str) -> dict[str, Any] | None:
    row = LocalObject.objects.filter(kind=kind, pk=id).first()
    return None if row is None else row.content


def _since(kind: str, moment: datetime) -> Iterator[LocalObject]:
    return LocalObject.objects.filter(kind=kind, created_at__gte=moment).order_by("-created_at").iterator()
