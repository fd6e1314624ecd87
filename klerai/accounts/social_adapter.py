"""Where allauth asks us about signing in through others: who may, by which address, and through which door.

Only an address that the provider has verified counts. It never opens an account that exists: whoever has one signs in
to it first and connects the provider in the settings.
"""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse

from klerai.accounts import social_settings
from klerai.accounts.models import Person
from klerai.accounts.social_http import ProviderSession
from klerai.accounts.time_zones import zone_or_default

ZONE = "social_zone"  # what the browser said when the sign-in began


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultSocialAccountAdapter.error_messages,
        "no_password": "It is the only way into your account. Set a password first; then you can disconnect it.",
    }

    def list_apps(
        self, request: HttpRequest | None, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Those of the settings; rows of the database are not asked."""
        return [
            _app(one)
            for one in settings.SOCIAL_LOGINS
            if provider in (None, one.id, one.kind) and client_id in (None, one.client_id)
        ]

    def get_requests_session(self) -> ProviderSession:
        return ProviderSession()

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Let somebody new in by a verified address that is nobody's here yet, and by nothing else."""
        if sociallogin.is_existing or sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        name = sociallogin.provider.app.name
        address = next((each for each in sociallogin.email_addresses if each.verified), None)
        if address is None:
            raise _refused(request, "unverified", name)
        address.email = address.email.lower()
        if Person.objects.filter(email__iexact=address.email).exists():
            raise _refused(request, "taken", name, email=address.email)
        address.primary = True
        sociallogin.email_addresses = [address]
        sociallogin.user.email = address.email

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if settings.SIGNUP != "open":
            closed = render(request, "account/signup_closed.html", {"signup": settings.SIGNUP})
            raise ImmediateHttpResponse(closed)
        return True

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> Person:
        person: Person = sociallogin.user
        person.email = str(data.get("email") or "").lower()
        person.name = str(data.get("name") or "").strip()[:80]
        person.time_zone = zone_or_default(str(request.session.get(ZONE, "")))
        return person

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> Person:
        """The person, the address and what they came through, or none of it."""
        saved: Person = super().save_user(request, sociallogin, form)
        return saved

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        return f"{reverse('settings')}#sign-in"


def _app(one: social_settings.SocialLogin) -> SocialApp:
    return SocialApp(
        provider=one.kind,
        provider_id=one.id if one.kind == "openid_connect" else "",
        name=one.name,
        client_id=one.client_id,
        secret=one.secret,
        settings={"server_url": one.server_url, "oauth_pkce_enabled": True},
    )


def _refused(request: HttpRequest, reason: str, name: str, *, email: str = "") -> ImmediateHttpResponse:
    context = {"reason": reason, "name": name, "email": email}
    return ImmediateHttpResponse(render(request, "socialaccount/refused.html", context, status=403))
