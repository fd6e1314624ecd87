"""The rows of what Stripe announced, and of the hourly look at whether all of it has arrived."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class StripeEvent(models.Model):
    """An announcement, taken in once. Of its content only ids are kept: what they stand for is asked for."""

    class State(models.TextChoices):
        RECEIVED = "received"
        APPLIED = "applied"
        SKIPPED = "skipped"
        FAILED = "failed"

    id = models.CharField(primary_key=True, max_length=100)
    type = models.CharField(max_length=80)
    created = models.DateTimeField()
    api_version = models.CharField(max_length=40, blank=True)
    livemode = models.BooleanField()
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=100, blank=True)
    customer_id = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RECEIVED)
    attempts = models.PositiveIntegerField(default=0)
    note = models.CharField(max_length=300, blank=True)  # why it was skipped, or what failed last
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "billing"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["received_at"],
                name="event_to_be_applied",
                condition=models.Q(state__in=["received", "failed"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type}, {self.state}"


class Reconciliation(models.Model):
    """One comparison of our rows with Stripe's, for operators to read."""

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    events_missed = models.PositiveIntegerField(default=0)
    events_applied = models.PositiveIntegerField(default=0)
    subscriptions_checked = models.PositiveIntegerField(default=0)
    subscriptions_corrected = models.PositiveIntegerField(default=0)
    payments_checked = models.PositiveIntegerField(default=0)
    payments_corrected = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        app_label = "billing"
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}"
