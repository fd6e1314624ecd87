"""Stripe by its SDK: the one file that knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

import stripe

from billing.errors import StripeRefused, StripeUnavailable
from billing.gateway import NewSession
from billing.stripe_objects import EventFacts, PaymentFacts, ReversalFacts, SessionFacts, SubscriptionFacts, id_of
from billing.stripe_settings import StripeSettings

TIMEOUT_SECONDS = 15
RETRIES = 2
PAGE = 100
Result = TypeVar("Result")


class StripeGateway:
    """Calls with a time limit and few retries; every call that makes something says a key that makes it once."""

    def __init__(self, client: stripe.StripeClient, settings: StripeSettings) -> None:
        self._v1 = client.v1
        self._settings = settings

    @classmethod
    @contextmanager
    def connected(cls, settings: StripeSettings) -> Iterator[StripeGateway]:
        """A gateway whose connection lasts as long as the block."""
        http = stripe.RequestsClient(timeout=TIMEOUT_SECONDS)
        try:
            client = stripe.StripeClient(
                settings.secret_key,
                base_addresses={"api": settings.api_base},
                max_network_retries=RETRIES,
                http_client=http,
            )
            yield cls(client, settings)
        finally:
            http.close()  # type: ignore[no-untyped-call]  # the SDK's own

    def create_customer(self, person_id: UUID, *, email: str) -> str:
        key = f"customer:{person_id}:{sha256(email.encode()).hexdigest()[:16]}"
        made = _asked(
            lambda: self._v1.customers.create(
                params={"email": email, "metadata": {"person": str(person_id)}}, options={"idempotency_key": key}
            )
        )
        return made.id

    def create_session(self, wanted: NewSession) -> SessionFacts:
        order = str(wanted.order_id)
        params: dict[str, Any] = {
            "mode": "subscription" if wanted.is_subscription else "payment",
            "customer": wanted.customer,
            "client_reference_id": order,
            "metadata": {"order": order},
            "line_items": [{"price": wanted.price_id, "quantity": 1}],
            "success_url": wanted.success_url,
            "cancel_url": wanted.cancel_url,
        }
        if wanted.is_subscription:
            params["subscription_data"] = {"metadata": {"order": order}}
        else:
            params["payment_intent_data"] = {"metadata": {"order": order}}
            params["invoice_creation"] = {"enabled": True}
        if self._settings.with_tax:
            params["automatic_tax"] = {"enabled": True}
            params["tax_id_collection"] = {"enabled": True}
            params["customer_update"] = {"address": "auto", "name": "auto"}
        made = _asked(
            lambda: self._v1.checkout.sessions.create(params=_typed(params), options={"idempotency_key": order})
        )
        return SessionFacts.of(made.to_dict())

    def expire_session(self, id: str) -> None:
        with suppress(StripeRefused):  # which it does for all that are not open
            _asked(lambda: self._v1.checkout.sessions.expire(id))

    def create_portal(self, customer: str, *, return_url: str) -> str:
        made = _asked(
            lambda: self._v1.billing_portal.sessions.create(params={"customer": customer, "return_url": return_url})
        )
        return made.url

    def session(self, id: str) -> SessionFacts | None:
        found = _found(lambda: self._v1.checkout.sessions.retrieve(id, params={"expand": ["line_items"]}))
        return None if found is None else SessionFacts.of(found.to_dict())

    def session_of_payment(self, id: str) -> str:
        found = _found(lambda: self._v1.checkout.sessions.list(params={"payment_intent": id, "limit": 1}))
        return found.data[0].id if found is not None and found.data else ""

    def subscription(self, id: str) -> SubscriptionFacts | None:
        found = _found(lambda: self._v1.subscriptions.retrieve(id, params={"expand": ["latest_invoice"]}))
        return None if found is None else SubscriptionFacts.of(found.to_dict())

    def payment(self, id: str) -> PaymentFacts | None:
        intent = _found(lambda: self._v1.payment_intents.retrieve(id))
        if intent is None:
            return None
        refunds = _listed(lambda: self._v1.refunds.list(params={"payment_intent": id, "limit": PAGE}))
        disputes = _listed(lambda: self._v1.disputes.list(params={"payment_intent": id, "limit": PAGE}))
        return PaymentFacts.of(intent.to_dict(), refunds=list(refunds), disputes=list(disputes))

    def cancel_now(self, subscription: str) -> None:
        _found(lambda: self._v1.subscriptions.cancel(subscription))

    def cancel_at_period_end(self, subscription: str, *, wanted: bool) -> None:
        _asked(lambda: self._v1.subscriptions.update(subscription, params={"cancel_at_period_end": wanted}))

    def change_price(self, subscription: str, *, item: str, price_id: str) -> None:
        """At once, for the difference; when that cannot be paid nothing changes."""
        _asked(
            lambda: self._v1.subscriptions.update(
                subscription,
                params={
                    "items": [{"id": item, "price": price_id}],
                    "proration_behavior": "always_invoice",
                    "payment_behavior": "error_if_incomplete",
                },
            )
        )

    def subscriptions_since(self, moment: datetime) -> Iterator[SubscriptionFacts]:
        created = {"gte": int(moment.timestamp())}
        listed = _listed(
            lambda: self._v1.subscriptions.list(
                params=_typed({"created": created, "status": "all", "limit": PAGE, "expand": ["data.latest_invoice"]})
            )
        )
        return (SubscriptionFacts.of(content) for content in listed)

    def sessions_since(self, moment: datetime) -> Iterator[SessionFacts]:
        created = {"gte": int(moment.timestamp())}
        listed = _listed(lambda: self._v1.checkout.sessions.list(params=_typed({"created": created, "limit": PAGE})))
        return (SessionFacts.of(content) for content in listed)

    def reversals_since(self, moment: datetime) -> Iterator[tuple[str, ReversalFacts]]:
        params = _typed({"created": {"gte": int(moment.timestamp())}, "limit": PAGE})
        for refund in _listed(lambda: self._v1.refunds.list(params=params)):
            yield id_of(refund.get("payment_intent")), ReversalFacts.of_refund(refund)
        for dispute in _listed(lambda: self._v1.disputes.list(params=params)):
            yield id_of(dispute.get("payment_intent")), ReversalFacts.of_dispute(dispute)

    def undelivered_events(self, since: datetime) -> Iterator[EventFacts]:
        created = {"gte": int(since.timestamp())}
        listed = _listed(
            lambda: self._v1.events.list(params=_typed({"created": created, "delivery_success": False, "limit": PAGE}))
        )
        return (EventFacts.of(content) for content in listed)


def _asked(ask: Callable[[], Result]) -> Result:
    """The answer. What may pass is StripeUnavailable, what will not is StripeRefused."""
    try:
        return ask()
    except (stripe.APIConnectionError, stripe.APIError, stripe.RateLimitError) as error:
        raise StripeUnavailable(str(error)) from error
    except stripe.StripeError as error:
        raise StripeRefused(str(error)) from error


def _found(ask: Callable[[], Result]) -> Result | None:
    """The answer, or None for what Stripe does not have."""
    try:
        return _asked(ask)
    except StripeRefused as error:
        if isinstance(error.__cause__, stripe.InvalidRequestError) and error.__cause__.http_status == 404:
            return None
        raise


def _listed(ask: Callable[[], Any]) -> Iterable[dict[str, Any]]:
    """All pages of a list, newest first."""
    pages = _asked(ask).auto_paging_iter()
    while (one := _asked(lambda: next(pages, None))) is not None:
        yield one.to_dict()


def _typed(params: dict[str, Any]) -> Any:
    """The SDK's parameter types are literal; ours are built."""
    return params
