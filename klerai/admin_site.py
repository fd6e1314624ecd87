"""The admin: plain Django, signed in through our own login."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse

from klerai.accounts.models import Person
from klerai.accounts.second_factor import has_given_code, has_second_factor

NOT_STAFF = "This part is for the people who run this server. Nothing was changed."
NO_SECOND_FACTOR = (
    "Staff need a second factor here, and this account has none. "
    "Set one up, then come back and give a code. Nothing was changed."
)
CODE_NOT_GIVEN = (
    "Staff need their second factor here, and this session was opened without it. "
    "Give a code of your app to go on; if you no longer have it, turn the second factor off in your settings "
    "and set it up anew. Nothing was changed."
)


class StaffSite(AdminSite):
    site_header = "KlerAI"
    site_title = "KlerAI"
    index_title = "Administration"

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and _is_sure_enough(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Our login page for strangers; a sentence for people who are signed in and still may not."""
        target = request.GET.get("next") or reverse("admin:index", current_app=self.name)
        if not request.user.is_authenticated:
            return redirect(reverse("account_login", query={"next": target}))
        if self.has_permission(request):
            return redirect("admin:index")
        return render(request, "account/refused.html", _refusal(request, target), status=403)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        logout(request)
        return redirect("/")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return redirect("account_change_password")


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    """For what may be looked at and never edited."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def _is_sure_enough(request: HttpRequest) -> bool:
    return bool(settings.LOCAL_MODE) or has_given_code(request)


def _refusal(request: HttpRequest, target: str) -> dict[str, str]:
    """Why not, and the way there is."""
    person = request.user
    if not (isinstance(person, Person) and person.is_staff):
        return {"reason": NOT_STAFF}
    confirm = reverse("mfa_reauthenticate", query={"next": target})
    if has_second_factor(person):
        return {"reason": CODE_NOT_GIVEN, "way_url": confirm, "way_words": "Give a code"}
    return {"reason": NO_SECOND_FACTOR, "way_url": reverse("mfa_activate_totp"), "way_words": "Set up a second factor"}
