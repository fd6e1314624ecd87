"""What is sold and what was bought, in the admin: offers are written, prices are dated, purchases are looked at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone
from procrastinate.contrib.django import app

from billing.inbox import QUEUE
from billing.models import (
    Order,
    Pack,
    Payment,
    Plan,
    Price,
    Reconciliation,
    Reversal,
    StripeCustomer,
    StripeEvent,
    Subscription,
)
from billing.person_admin import OfPerson, ReadOnly


class Offer(admin.ModelAdmin):  # type: ignore[type-arg]  # the models differ, not what is done with them
    """Written, and taken off the shelf by `is_offered`; never deleted, because old orders name it."""

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return () if obj is None else (self.opts.pk.name,)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Plan)
class PlanAdmin(Offer):
    list_display = ("title", "name", "daily_credits", "period_credits", "is_offered")


@admin.register(Pack)
class PackAdmin(Offer):
    list_display = ("title", "slug", "credits", "is_offered")


class PriceForm(ModelForm):  # type: ignore[type-arg]  # takes no argument at run time
    def clean_starts_on(self) -> Any:
        day = self.cleaned_data["starts_on"]
        if day < timezone.now().date():
            raise ValidationError("A price begins today (UTC) or later: what was asked for in the past stays true.")
        return day


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    """A change is a new row. One that has begun is part of the past and stays as it is."""

    form = PriceForm
    list_display = ("__str__", "plan", "pack", "cents", "currency", "starts_on", "stripe_price_id")
    list_filter = ("plan", "pack")
    list_select_related = ("plan", "pack")
    fields = ("plan", "pack", "cents", "starts_on", "stripe_price_id")

    def has_change_permission(self, request: HttpRequest, obj: Price | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _has_begun(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Price | None = None) -> bool:
        """One by one: the list's own action would not ask which have begun."""
        return obj is not None and super().has_delete_permission(request, obj) and not _has_begun(obj)


@admin.register(Order)
class OrderAdmin(OfPerson):
    list_display = ("created_at", "person", "price", "credits", "state", "session_id", "problem", "ledger")
    list_filter = ("state", ("problem", admin.EmptyFieldListFilter))
    list_select_related = ("price__plan", "price__pack")
    exclude = ("return_url",)
    ordering = ("-created_at",)


@admin.register(Payment)
class PaymentAdmin(OfPerson):
    list_display = ("paid_at", "person", "payment_intent", "cents", "credits_granted", "credits_revoked", "ledger")
    ordering = ("-paid_at",)


@admin.register(Subscription)
class SubscriptionAdmin(OfPerson):
    list_display = ("person", "plan", "status", "paid_until", "cancels_at", "ended_at", "problem", "ledger")
    list_filter = ("status", "plan", ("problem", admin.EmptyFieldListFilter))
    list_select_related = ("plan",)
    ordering = ("-started_at",)


@admin.register(StripeCustomer)
class StripeCustomerAdmin(OfPerson):
    list_display = ("person", "stripe_id", "created_at", "ledger", "payments")
    ordering = ("-created_at",)


@admin.register(Reversal)
class ReversalAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    list_display = ("stripe_id", "kind", "payment", "cents", "credits_taken", "is_restored")
    list_filter = ("kind", "is_restored")
    search_fields = ("stripe_id", "payment__payment_intent")


@admin.register(StripeEvent)
class StripeEventAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    list_display = ("received_at", "type", "state", "attempts", "object_id", "customer_id", "note")
    list_filter = ("state", "type")
    search_fields = ("id", "object_id", "customer_id")
    ordering = ("-received_at",)
    actions = ("replay",)

    @admin.action(description="Replay: ask Stripe again what it stands for", permissions=["replay"])
    def replay(self, request: HttpRequest, events: QuerySet[StripeEvent]) -> None:
        """Applying is safe to repeat: it writes what Stripe says now, and grants are keyed by their payment."""
        ids = list(events.values_list("pk", flat=True))
        with transaction.atomic():
            events.update(state=StripeEvent.State.RECEIVED, note="")
            for event_id in ids:
                app.configure_task("apply_stripe_event", queue=QUEUE).defer(event_id=event_id)
        self.message_user(request, f"Announcements queued again: {len(ids)}.", messages.SUCCESS)

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("billing.change_stripeevent")


@admin.register(Reconciliation)
class ReconciliationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    list_display = (
        *("started_at", "ended_at", "events_missed", "events_applied"),
        *("subscriptions_checked", "subscriptions_corrected", "payments_checked", "payments_corrected", "problem"),
    )
    list_filter = (("problem", admin.EmptyFieldListFilter),)


def _has_begun(price: Price | None) -> bool:
    return price is not None and price.starts_on <= timezone.now().date()
