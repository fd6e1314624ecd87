"""Who a person is at Stripe."""

from __future__ import annotations

from uuid import UUID

from billing.stripe_rows import StripeCustomer


def stripe_id_of(person_id: UUID) -> str:
    """Empty for somebody who never began to buy, and for somebody who has left."""
    return StripeCustomer.objects.filter(pk=person_id).values_list("stripe_id", flat=True).first() or ""
