"""The ledger for operators: to read, never to change. The only way to add credits is a grant with a reason."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from billing import credits
from billing import sales_admin as sales_admin  # registers what is sold
from billing.forms import GrantForm
from billing.models import Account, Entry, Transaction
from billing.person_admin import OfPerson, ReadOnly
from klerai.accounts.models import Person


@admin.register(Account)
class AccountAdmin(OfPerson):
    list_display = ("person", "kind", "bucket", "balance", "day", "blocked_at", "ledger", "payments")
    list_filter = ("kind", "bucket", ("blocked_at", admin.EmptyFieldListFilter))
    ordering = ("person_id", "kind", "bucket")

    def get_urls(self) -> list[URLPattern]:
        grant = path("grant/", self.admin_site.admin_view(self.grant), name="billing_account_grant")
        return [grant, *super().get_urls()]

    def grant(self, request: HttpRequest) -> HttpResponse:
        """Give credits: `?email=` fills in whom."""
        staff = request.user
        if not isinstance(staff, Person) or not staff.has_perm("billing.grant_credits"):
            raise PermissionDenied
        form = GrantForm(request.POST or None, initial={"email": request.GET.get("email", "")})
        if request.method == "POST" and form.is_valid():
            return self._grant(request, form, staff=staff)
        context = {
            **self.admin_site.each_context(request),
            "title": "Grant credits",
            "opts": self.opts,
            "form": form,
        }
        status = 400 if request.method == "POST" else 200
        return TemplateResponse(request, "admin/billing/account/grant.html", context, status=status)

    def _grant(self, request: HttpRequest, form: GrantForm, *, staff: Person) -> HttpResponse:
        person, asked = form.person, form.cleaned_data
        with transaction.atomic():
            granted = credits.grant(
                person,
                amount=asked["amount"],
                reason=asked["reason"],
                by=staff.pk,
                key=f"grant:admin:{asked['key']}",
            )
            if granted.is_new:
                LogEntry.objects.log_actions(
                    user_id=staff.pk,
                    queryset=[person],
                    action_flag=CHANGE,
                    change_message=f"Granted {asked['amount']} credits: {asked['reason']}",
                    single_object=True,
                )
        said = f"Granted {asked['amount']:,} credits to {person}" if granted.is_new else "This grant was made before"
        messages.success(request, f"{said}. They now have {granted.balance.available:,}.")
        return redirect(f"{reverse('admin:billing_transaction_changelist')}?{urlencode({'q': person.email})}")


class EntryInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]  # Django gives it no parameters
    model = Entry
    fields = ("account", "amount")
    extra = 0


@admin.register(Transaction)
class TransactionAdmin(OfPerson):
    list_display = ("created_at", "person", "kind", "run_id", "reason", "daily_after", "pack_after", "payments")
    list_filter = ("kind",)
    ordering = ("-number",)
    inlines = (EntryInline,)
