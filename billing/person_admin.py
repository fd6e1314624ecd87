"""Rows of the books in the admin: to look at, and found by whatever names a person or a purchase."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from billing.models import Order, Payment, Reversal, StripeCustomer, Subscription, Transaction
from klerai.accounts.models import Person


class ReadOnly:
    """Nobody adds, changes or deletes here, superusers included."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class OfPerson(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # the models differ, not what is done with them
    """Rows that name a person by id, found and shown by e-mail address."""

    search_fields = ("person_id",)
    search_help_text = (
        "A person's e-mail address or id, or an id of a run, order, payment, charge, refund, subscription or customer."
    )
    show_full_result_count = False
    change_list_template = "admin/billing/ledger_list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        email = Person.objects.filter(pk=OuterRef("person_id")).values("email")[:1]
        rows: QuerySet[Any] = super().get_queryset(request).annotate(email=Subquery(email))
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(people_behind(term)), False

    @admin.display(description="person", ordering="email")
    def person(self, row: Any) -> str:
        return row.email or f"{row.person_id} (deleted)"

    @admin.display(description="ledger")
    def ledger(self, row: Any) -> SafeString:
        return _link("transaction", row.person_id, "ledger")

    @admin.display(description="payments")
    def payments(self, row: Any) -> SafeString:
        return _link("payment", row.person_id, "payments")


def people_behind(term: str) -> Q:
    """Whose rows are meant by an e-mail or part of it, a person's id, or any id of an order, payment or subscription.

    Ids of Stripe's are found by their beginning.
    """
    orders = Q(session_id__startswith=term)
    meant = Q(person_id__in=Person.objects.filter(email__icontains=term).values("pk"))
    if (key := _uuid(term)) is not None:
        orders |= Q(pk=key)
        meant |= Q(person_id=key)
        meant |= Q(person_id__in=Transaction.objects.filter(run_id=key).values("person_id"))
    bought = Q(payment_intent__startswith=term) | Q(invoice__startswith=term) | Q(charge__startswith=term)
    taken_back = Reversal.objects.filter(stripe_id__startswith=term).values("payment__person_id")
    return (
        meant
        | Q(person_id__in=Order.objects.filter(orders).values("person_id"))
        | Q(person_id__in=Payment.objects.filter(bought).values("person_id"))
        | Q(person_id__in=taken_back)
        | Q(person_id__in=Subscription.objects.filter(stripe_id__startswith=term).values("person_id"))
        | Q(person_id__in=StripeCustomer.objects.filter(stripe_id__startswith=term).values("person_id"))
    )


def _link(model: str, person_id: UUID, words: str) -> SafeString:
    address = reverse(f"admin:billing_{model}_changelist", query={"q": str(person_id)})
    return format_html('<a href="{}">{}</a>', address, words)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
