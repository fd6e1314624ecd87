"""Where allauth asks us: who may sign up, which address a request comes from, and the words of its refusals."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm
from django.http import HttpRequest

from klerai.accounts.addresses import client_address
from klerai.accounts.models import Person
from klerai.accounts.time_zones import zone_or_default


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "email_password_mismatch": "That e-mail and password do not belong together.",
        "too_many_login_attempts": (
            "Too many wrong passwords. Wait five minutes, or set a new password by “Forgotten?”."
        ),
        "incorrect_password": "That is not your password.",
        "enter_current_password": "That is not your password.",
        "invalid_password_reset": "This link was used already or is too old. Ask for a new one.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        is_open: bool = settings.SIGNUP == "open"
        return is_open

    def save_user(self, request: HttpRequest, user: Person, form: BaseForm, commit: bool = True) -> Person:
        user.time_zone = zone_or_default(form.cleaned_data.get("time_zone", ""))
        saved: Person = super().save_user(request, user, form, commit)
        return saved

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        """Also before another way in is connected: an open session alone must not make itself one that lasts."""
        return app == "allauth.socialaccount" or bool(super().is_reauthentication_required(app=app, **more))

    def get_reauthentication_methods(self, user: Person) -> list[dict[str, Any]]:
        """Who has a second factor confirms by it alone: an open session and the password cannot take it away."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        by_code = [method for method in methods if method["id"] == "mfa_reauthenticate"]
        return by_code or methods

    def get_client_ip(self, request: HttpRequest) -> str:
        address = client_address(request)
        if address is None:
            raise PermissionDenied("The server was reached without a client address.")
        return str(address)

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """One count for an account, whichever of our host names is used."""
        return str(credentials.get("email", "")).lower()
