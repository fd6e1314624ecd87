"""The admin: plain Django, signed in through our own login."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse

NOT_STAFF = "This part is for the people who run this server. Nothing was changed."
NO_SECOND_FACTOR = (
    "Staff need a second factor outside local mode, and this account has none. "
    "Until it does, use the commands on the server. Nothing was changed."
)


class StaffSite(AdminSite):
    site_header = "KlerAI"
    site_title = "KlerAI"
    index_title = "Administration"

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and _has_second_factor()

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Our login page for strangers; a sentence for people who are signed in and still may not."""
        target = request.GET.get("next") or reverse("admin:index", current_app=self.name)
        if not request.user.is_authenticated:
            return redirect(reverse("account_login", query={"next": target}))
        if self.has_permission(request):
            return redirect("admin:index")
        reason = NO_SECOND_FACTOR if request.user.is_staff else NOT_STAFF
        return render(request, "account/refused.html", {"reason": reason}, status=403)

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


class AdminConfig(DjangoAdminConfig):
    default_site = "klerai.admin_site.StaffSite"


def _has_second_factor() -> bool:
    """Nobody can set one up yet, so outside local mode there is no way in: better than a way without it."""
    return bool(settings.LOCAL_MODE)
