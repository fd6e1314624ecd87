"""The rows of what is sold: plans, packs, and what each costs from which date on."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from billing.money import in_dollars


class Plan(models.Model):
    """What a plan gives. `free` is everybody's and has no price; no `period_credits` is no limit beside the day's.

    Requests are those of programs: of one key, and of all keys of a person. An empty limit is none.
    """

    name = models.SlugField(primary_key=True, max_length=32)
    title = models.CharField(max_length=60)
    daily_credits = models.PositiveIntegerField()
    period_credits = models.PositiveIntegerField(null=True, blank=True)
    key_requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    all_requests_per_hour = models.PositiveIntegerField(null=True, blank=True)
    most_documents = models.PositiveIntegerField(null=True, blank=True)
    most_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    is_offered = models.BooleanField(default=True)

    class Meta:
        app_label = "billing"
        ordering = ["daily_credits", "name"]

    def __str__(self) -> str:
        return self.title


class Pack(models.Model):
    """Credits bought once, which never expire."""

    slug = models.SlugField(primary_key=True, max_length=32)
    title = models.CharField(max_length=60)
    credits = models.PositiveIntegerField()
    is_offered = models.BooleanField(default=True)

    class Meta:
        app_label = "billing"
        ordering = ["credits", "slug"]

    def __str__(self) -> str:
        return self.title


class Price(models.Model):
    """What a plan costs a month, or a pack once, from a date on (UTC).

    A change is a new row: the newest that has begun is asked for, and a payment is judged by whichever it was made for.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    plan = models.ForeignKey(Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="prices")
    pack = models.ForeignKey(Pack, null=True, blank=True, on_delete=models.PROTECT, related_name="prices")
    cents = models.PositiveIntegerField()
    currency = models.CharField(max_length=3, default="usd", editable=False)
    stripe_price_id = models.CharField(max_length=100, blank=True)
    starts_on = models.DateField()

    class Meta:
        app_label = "billing"
        ordering = ["-starts_on"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(plan__isnull=False, pack__isnull=True) | Q(plan__isnull=True, pack__isnull=False),
                name="price_is_of_a_plan_or_a_pack",
            ),
            models.CheckConstraint(condition=Q(cents__gt=0), name="price_is_above_zero"),
            models.UniqueConstraint(fields=["plan", "starts_on"], name="price_of_a_plan_begins_once_a_day"),
            models.UniqueConstraint(fields=["pack", "starts_on"], name="price_of_a_pack_begins_once_a_day"),
            models.UniqueConstraint(
                fields=["stripe_price_id"], condition=~Q(stripe_price_id=""), name="price_id_is_of_one_price"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan or self.pack}: {self.dollars} from {self.starts_on}"

    @property
    def dollars(self) -> str:
        return in_dollars(self.cents)
