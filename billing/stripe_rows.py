"""The rows of what people bought, as Stripe last told it. They name a person by id, because they outlive them."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from billing.offer_rows import Plan, Price


class StripeCustomer(models.Model):
    """Who a person is at Stripe. Whatever is written about their purchases is written under a lock on this row."""

    person_id = models.UUIDField(primary_key=True)
    stripe_id = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "billing"

    def __str__(self) -> str:
        return self.stripe_id


class Order(models.Model):
    """One checkout that was begun. Its id is the idempotency key at Stripe and comes back in everything about it."""

    class State(models.TextChoices):
        OPEN = "open"
        PAID = "paid"
        EXPIRED = "expired"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person_id = models.UUIDField(db_index=True)
    price = models.ForeignKey(Price, on_delete=models.PROTECT, related_name="+")
    credits = models.PositiveIntegerField(null=True, blank=True)  # what its pack held when it was ordered
    session_id = models.CharField(max_length=100, blank=True)
    return_url = models.CharField(max_length=500)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    problem = models.CharField(max_length=300, blank=True)  # a sentence for the operator
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "billing"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["session_id"], condition=~Q(session_id=""), name="order_has_its_own_session"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.price.plan or self.price.pack}, {self.state}"


class Payment(models.Model):
    """A pack that was paid for: what it brought, and what refunds and disputes have taken back of that."""

    payment_intent = models.CharField(primary_key=True, max_length=100)
    person_id = models.UUIDField(db_index=True)
    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="payment")
    cents = models.PositiveIntegerField()  # what was paid, taxes included
    credits_granted = models.PositiveIntegerField()
    credits_revoked = models.PositiveIntegerField(default=0)
    invoice = models.CharField(max_length=100, blank=True)
    charge = models.CharField(max_length=100, blank=True)  # what a bank and a dispute name
    paid_at = models.DateTimeField()

    class Meta:
        app_label = "billing"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(credits_revoked__lte=models.F("credits_granted")),
                name="payment_gives_back_no_more_than_it_was",
            ),
        ]

    def __str__(self) -> str:
        return self.payment_intent

    @property
    def ledger_key(self) -> str:
        return f"grant:pack:{self.payment_intent}"


class Reversal(models.Model):
    """A refund or a dispute of a pack's payment, and the credits it took. It is judged once."""

    class Kind(models.TextChoices):
        REFUND = "refund"
        DISPUTE = "dispute"

    stripe_id = models.CharField(primary_key=True, max_length=100)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="reversals")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    cents = models.PositiveIntegerField()
    credits_taken = models.PositiveIntegerField()
    is_restored = models.BooleanField(default=False)  # a dispute won, or a refund that failed

    class Meta:
        app_label = "billing"

    def __str__(self) -> str:
        return self.stripe_id


class Subscription(models.Model):
    """A plan that is paid for by the month. What it entitles to is decided in billing/plans.py."""

    stripe_id = models.CharField(primary_key=True, max_length=100)
    person_id = models.UUIDField(db_index=True)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(max_length=20)  # Stripe's word
    started_at = models.DateTimeField()
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    paid_until = models.DateTimeField()
    cancels_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    unpaid_since = models.DateTimeField(null=True, blank=True)
    spent_before = models.BigIntegerField(default=0)  # daily credits ever spent when this period began
    problem = models.CharField(max_length=300, blank=True)  # a sentence for the operator
    applied_at = models.DateTimeField()

    class Meta:
        app_label = "billing"

    def __str__(self) -> str:
        return f"{self.plan_id}, {self.status}"


class PastDueNotice(models.Model):
    """A mail about a failed payment. The constraint lets each be sent once."""

    class Kind(models.TextChoices):
        FIRST = "first"
        THIRD_DAY = "third_day"
        END = "end"

    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="notices")
    unpaid_since = models.DateTimeField()
    kind = models.CharField(max_length=9, choices=Kind.choices)
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "billing"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["subscription", "unpaid_since", "kind"], name="past_due_notice_is_sent_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}, {self.subscription_id}"
