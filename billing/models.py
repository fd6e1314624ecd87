"""The ledger's three tables, whose rules are constraints and triggers of the migrations; others stand beside."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from billing.inbox_rows import Reconciliation as Reconciliation
from billing.inbox_rows import StripeEvent as StripeEvent
from billing.local_rows import LocalObject as LocalObject
from billing.offer_rows import Pack as Pack
from billing.offer_rows import Plan as Plan
from billing.offer_rows import Price as Price
from billing.stripe_rows import Order as Order
from billing.stripe_rows import PastDueNotice as PastDueNotice
from billing.stripe_rows import Payment as Payment
from billing.stripe_rows import Reversal as Reversal
from billing.stripe_rows import StripeCustomer as StripeCustomer
from billing.stripe_rows import Subscription as Subscription

MOST_PER_ENTRY = 1_000_000


class Account(models.Model):
    """Where credits of one person are. The ledger outlives a deleted person, so `person_id` is no foreign key.

    The wallet of daily credits also says which day is open, what was granted for it, and the plan it was granted by;
    no plan, or one that has ended, is looked at anew.
    """

    class Kind(models.TextChoices):
        WALLET = "wallet"
        HELD = "held"
        ISSUED = "issued"
        SPENT = "spent"
        EXPIRED = "expired"

    class Bucket(models.TextChoices):
        DAILY = "daily"
        PACK = "pack"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    bucket = models.CharField(max_length=8, choices=Bucket.choices)
    balance = models.BigIntegerField(db_default=0)
    day = models.DateField(null=True, blank=True)
    granted = models.PositiveIntegerField(db_default=0)
    plan = models.CharField(max_length=32, blank=True, db_default="")
    plan_until = models.DateTimeField(null=True, blank=True)
    blocked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["person_id", "kind", "bucket"], name="account_is_unique"),
            models.CheckConstraint(condition=Q(balance__gte=0) | Q(kind="issued"), name="account_is_never_overdrawn"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}, {self.bucket}, of {self.person_id}"


class Transaction(models.Model):
    """One movement of a person's credits, written once and never changed. `key` says what it is, and only once."""

    class Kind(models.TextChoices):
        GRANT = "grant"
        HOLD = "hold"
        SETTLE = "settle"
        RELEASE = "release"
        EXPIRE = "expire"
        REVOKE = "revoke"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = models.BigIntegerField(editable=False)  # the order of writing, given by the database
    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    person_id = models.UUIDField()
    run_id = models.UUIDField(null=True, blank=True)
    day = models.DateField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, db_default="")
    created_by = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()
    daily_after = models.BigIntegerField()
    pack_after = models.BigIntegerField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["person_id", "number"], name="transaction_of_person"),
            models.Index(fields=["run_id"], name="transaction_of_run", condition=Q(run_id__isnull=False)),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["key"], name="transaction_key_is_unique"),
            models.CheckConstraint(
                condition=Q(kind__in=["hold", "settle", "release"], run_id__isnull=False)
                | Q(kind__in=["grant", "expire", "revoke"], run_id__isnull=True),
                name="transaction_names_its_run",
            ),
        ]
        permissions = [("grant_credits", "Can grant credits")]

    def __str__(self) -> str:
        return self.key


class Entry(models.Model):
    """What a transaction did to one account. The entries of a transaction are written together and sum to zero."""

    transaction = models.ForeignKey(Transaction, on_delete=models.PROTECT, related_name="entries")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    amount = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "entries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=~Q(amount=0), name="entry_moves_something"),
            models.CheckConstraint(
                condition=Q(amount__gte=-MOST_PER_ENTRY, amount__lte=MOST_PER_ENTRY), name="entry_is_bounded"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount:+d}"
