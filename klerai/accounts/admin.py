"""People and keys in the admin: to look, to suspend, to revoke; never to read a secret."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from klerai.accounts import suspension
from klerai.accounts.models import ApiKey, Person
from klerai.accounts.second_factor import remove_second_factor
from klerai.admin_site import ReadOnlyAdmin

logger = structlog.get_logger(__name__)

for _model in (EmailAddress, Authenticator, UserSession, SocialAccount, SocialApp, SocialToken, Group):
    admin.site.unregister(_model)


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=500, label="Reason:")


@admin.register(Person)
class PersonAdmin(ReadOnlyAdmin):
    list_display = ("email", "name", "is_active", "is_staff", "is_verified", "time_zone", "created_at", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "name")
    ordering = ("-created_at",)
    fields = (
        "id",
        "email",
        "name",
        "is_active",
        "is_staff",
        "is_superuser",
        "email_verified_at",
        "time_zone",
        "time_zone_changed_at",
        "ceiling_credits",
        "created_at",
        "last_login",
    )
    actions = ("suspend", "reinstate", "remove_second_factor")
    action_form = ReasonForm

    @admin.display(boolean=True, description="verified")
    def is_verified(self, person: Person) -> bool:
        return person.is_verified

    @admin.action(description="Suspend: refused from the next request on", permissions=["suspend"])
    def suspend(self, request: HttpRequest, people: QuerySet[Person]) -> None:
        """Never the one who presses it: they could not undo it."""
        reason = request.POST.get("reason", "").strip()
        if not reason:
            self.message_user(request, "Nobody was suspended: say why beside the action.", messages.ERROR)
            return
        suspended = suspension.suspend(people.exclude(email=request.user.get_username()))
        self._log(request, suspended, f"Suspended: {reason}")
        self.message_user(request, f"People suspended: {len(suspended)}.")

    @admin.action(description="Reinstate", permissions=["suspend"])
    def reinstate(self, request: HttpRequest, people: QuerySet[Person]) -> None:
        reason = request.POST.get("reason", "").strip()
        reinstated = suspension.reinstate(people)
        self._log(request, reinstated, f"Reinstated: {reason}" if reason else "Reinstated")
        self.message_user(request, f"People reinstated: {len(reinstated)}.")

    def _log(self, request: HttpRequest, people: Sequence[Person], words: str) -> None:
        """The reason stands in the person's history in the admin, and who gave it; the log has ids alone."""
        for person in people:
            self.log_change(request, person, words)
            logger.warning("person_changed", person=str(person.pk), by=str(request.user.pk))

    @admin.action(description="Remove the second factor: the password alone signs in", permissions=["suspend"])
    def remove_second_factor(self, request: HttpRequest, people: QuerySet[Person]) -> None:
        """For somebody who has lost the app and the codes. Never one's own: settings ask for a code."""
        others = people.exclude(email=request.user.get_username())
        removed = [person for person in others if remove_second_factor(person)]
        for person in removed:
            logger.warning("second_factor_removed", person=str(person.pk), by=str(request.user.pk))
        self.message_user(request, f"Second factors removed: {len(removed)}. Each person is told by mail.")

    def has_suspend_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_person")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ("person", "name", "prefix", "scopes", "is_active", "created_at", "last_used_at")
    list_filter = ("is_active",)
    search_fields = ("person__email", "name", "prefix")
    list_select_related = ("person",)
    fields = ("id", "person", "name", "prefix", "scopes", "is_active", "created_at", "last_used_at")
    actions = ("revoke",)

    @admin.action(description="Revoke: refused from the next request on", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        self.message_user(request, f"Keys revoked: {keys.update(is_active=False)}.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apikey")
