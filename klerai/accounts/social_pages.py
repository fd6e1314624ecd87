"""The ways to a provider and back, and what is connected to an account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.utils import get_next_redirect_url
from allauth.core import ratelimit
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.internal.flows.connect import validate_disconnect
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers.base import AuthProcess, Provider
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from klerai.accounts.models import Person
from klerai.accounts.provider import GitHubAdapter, OpenIdAdapter
from klerai.accounts.social_adapter import ZONE


@dataclass(frozen=True, slots=True)
class Connection:
    """A way in, and if it is connected by which account there. One that is set up no more has no `id`."""

    id: str
    name: str
    account_id: int | None = None
    who: str = ""


def connections_of(person: Person) -> Iterator[Connection]:
    accounts = {account.provider: account for account in SocialAccount.objects.filter(user=person)}
    for one in settings.SOCIAL_LOGINS:
        account = accounts.pop(one.id, None)
        yield Connection(one.id, one.name, account.pk if account else None, _who(account) if account else "")
    for provider, account in accounts.items():
        yield Connection("", provider.capitalize(), account.pk, _who(account))


@never_cache
@require_POST
def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Off to the provider: to sign in, or with `process=connect` to add it to the account that is signed in."""
    provider = _provider(request, provider_id)
    process = AuthProcess.CONNECT if request.POST.get("process") == "connect" else AuthProcess.LOGIN
    if process == AuthProcess.CONNECT and not request.user.is_authenticated:
        return redirect("account_login")
    limited: HttpResponse | None = ratelimit.consume_or_429(request, action="login")
    if limited:
        return limited
    request.session[ZONE] = request.POST.get("time_zone", "")[:64]
    try:
        leading: HttpResponseBase = provider.redirect(request, process, next_url=get_next_redirect_url(request))
    except OAuth2Error as error:
        leading = render_authentication_error(request, provider, exception=error)
    return leading


@never_cache
@require_safe
def come_back(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    provider = _provider(request, provider_id)
    adapter = GitHubAdapter(request) if provider_id == "github" else OpenIdAdapter(request, provider_id)
    try:
        returned: HttpResponseBase = _Callback.adapter_view(adapter)(request)
    except (OAuth2Error, IntegrityError) as error:  # the second: of two who come in as the same one at once, the later
        returned = render_authentication_error(request, provider, exception=error)
    return returned


@never_cache
@require_safe
def cancelled(request: HttpRequest) -> HttpResponse:
    return render(request, "socialaccount/login_cancelled.html")


@login_required
@require_POST
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth is untyped
def disconnect(request: HttpRequest, account_id: int) -> HttpResponse:
    account = SocialAccount.objects.filter(pk=account_id, user=request.user).first()
    if account is None:
        raise Http404
    try:
        validate_disconnect(request, account)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("settings")
    named = next((one.name for one in connections_of(account.user) if one.account_id == account.pk), "")
    account.delete()
    mailed = "socialaccount/email/account_disconnected"
    get_account_adapter(request).send_notification_mail(mailed, request.user, context={"name": named})
    messages.success(request, f"{named} no longer signs you in.")
    return redirect("settings")


class _Callback(OAuth2CallbackView):  # type: ignore[misc]  # allauth is untyped
    """allauth's, which hands the nonce of the sign-in to who checks the token."""

    def _get_state(self, request: HttpRequest, provider: Provider) -> tuple[dict[str, Any] | None, Any]:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


def _provider(request: HttpRequest, provider_id: str) -> Provider:
    if provider_id not in {one.id for one in settings.SOCIAL_LOGINS}:
        raise Http404
    try:
        return get_adapter(request).get_provider(request, provider_id)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error


def _who(account: SocialAccount) -> str:
    said = account.extra_data
    return str(said.get("email") or said.get("login") or said.get("name") or account.uid)


urlpatterns = [
    path("social/cancelled/", cancelled, name="socialaccount_login_cancelled"),
    path("social/<int:account_id>/disconnect/", disconnect, name="social-disconnect"),
    path("social/github/callback/", come_back, {"provider_id": "github"}, name="github_callback"),
    path("social/<slug:provider_id>/callback/", come_back, name="openid_connect_callback"),
    path("social/<slug:provider_id>/", begin, name="social-begin"),
]
