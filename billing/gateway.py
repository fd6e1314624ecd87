"""What the product asks of Stripe, whether that is Stripe or the test checkout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.conf import settings

from billing.errors import NothingSold
from billing.stripe_objects import EventFacts, PaymentFacts, ReversalFacts, SessionFacts, SubscriptionFacts


@dataclass(frozen=True, slots=True)
class NewSession:
    """A checkout to be made. The order's id makes it happen once."""

    order_id: UUID
    customer: str
    price_id: str
    is_subscription: bool
    success_url: str
    cancel_url: str


class Gateway(Protocol):
    """Objects that are not there are None. Raises StripeUnavailable, and StripeRefused where asking again is no use."""

    def create_customer(self, person_id: UUID, *, email: str) -> str: ...
    def create_session(self, wanted: NewSession) -> SessionFacts: ...
    def expire_session(self, id: str) -> None:
        """Let a checkout that nobody paid for be paid by nobody any more; any other stays as it is."""

    def create_portal(self, customer: str, *, return_url: str) -> str: ...
    def session(self, id: str) -> SessionFacts | None: ...
    def subscription(self, id: str) -> SubscriptionFacts | None: ...
    def payment(self, id: str) -> PaymentFacts | None: ...
    def session_of_payment(self, id: str) -> str: ...
    def cancel_now(self, subscription: str) -> None: ...
    def cancel_at_period_end(self, subscription: str, *, wanted: bool) -> None: ...
    def change_price(self, subscription: str, *, item: str, price_id: str) -> None: ...
    def subscriptions_since(self, moment: datetime) -> Iterator[SubscriptionFacts]: ...
    def sessions_since(self, moment: datetime) -> Iterator[SessionFacts]: ...
    def reversals_since(self, moment: datetime) -> Iterator[tuple[str, ReversalFacts]]:
        """Refunds and disputes, each with the payment it takes back."""

    def undelivered_events(self, since: datetime) -> Iterator[EventFacts]: ...


@contextmanager
def gateway() -> Iterator[Gateway]:
    """Whom the settings name, for the time of the block. Raises NothingSold when that is nobody."""
    match settings.STRIPE.seller:
        case "stripe":
            from billing.stripe_gateway import StripeGateway  # a heavy SDK: only where it is used

            with StripeGateway.connected(settings.STRIPE) as stripe:
                yield stripe
        case "local" if settings.LOCAL_MODE:
            from billing.local_stripe import LocalStripe

            yield LocalStripe()
        case _:
            raise NothingSold
