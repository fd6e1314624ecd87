"""Whom one may sign in through: allauth's providers, with the checks of OpenID Connect that it leaves out.

allauth finds this module by its name, in the app that it is in.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.github.provider import GitHubProvider as AllauthGitHubProvider
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from klerai.accounts.social_settings import GITHUB

KEPT = ("login", "email", "name")


class GitHubAdapter(GitHubOAuth2Adapter):  # type: ignore[misc]  # allauth is untyped
    """Of github.com, or of a GitHub of the operator's own."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        server = str(self.get_provider().app.settings["server_url"])
        api = "https://api.github.com" if server == GITHUB else f"{server}/api/v3"
        self.authorize_url = f"{server}/login/oauth/authorize"
        self.access_token_url = f"{server}/login/oauth/access_token"
        self.profile_url, self.emails_url = f"{api}/user", f"{api}/user/emails"


class GitHubProvider(AllauthGitHubProvider):  # type: ignore[misc]  # allauth is untyped
    oauth2_adapter_class = GitHubAdapter

    def extract_extra_data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return _kept(data)


class OpenIdAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth is untyped
    """`nonce` is what was sent along when this sign-in began."""

    nonce = ""

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, response: Mapping[str, Any], **_: Any
    ) -> SocialLogin:
        claims = self._claims(app, str(response.get("id_token") or ""))
        told = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else claims
        if not isinstance(told, dict) or told.get("sub") != claims["sub"]:
            raise OAuth2Error("The profile is of somebody else than the token.")
        return self.get_provider().sociallogin_from_response(request, {**claims, **told})

    def _claims(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """What the token says, once it is known to be theirs, for us, and for this very sign-in."""
        try:
            claims: dict[str, Any] = jwtkit.verify_and_decode(
                credential=id_token,
                keys_url=self.openid_config["jwks_uri"],
                issuer=self.openid_config["issuer"],
                audience=app.client_id,
                lookup_kid=jwtkit.lookup_kid_jwk,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("The token cannot be read.") from error
        if not self.nonce or not hmac.compare_digest(str(claims.get("nonce", "")).encode(), self.nonce.encode()):
            raise OAuth2Error("The token is of another sign-in.")
        if not claims.get("sub"):
            raise OAuth2Error("The token names nobody.")
        return claims


class OpenIdProvider(OpenIDConnectProvider):  # type: ignore[misc]  # allauth is untyped
    oauth2_adapter_class = OpenIdAdapter

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **more: Any
    ) -> HttpResponseBase:
        nonce = secrets.token_urlsafe(24)
        params = {**self.get_auth_params(), "nonce": nonce}
        leading: HttpResponseBase = super().redirect(
            request, process, next_url, data, auth_params=params, nonce=nonce, **more
        )
        return leading

    def extract_extra_data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return _kept(data)

    def extract_email_addresses(self, data: Mapping[str, Any]) -> list[EmailAddress]:
        if not data.get("email"):
            return []
        said = data.get("email_verified")
        is_verified = said is True or said == "true"  # some servers say it as text, and “false” is a text too
        return [EmailAddress(email=str(data["email"]), verified=is_verified, primary=True)]


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is needed to show which account it is, and no more."""
    return {name: str(data[name]) for name in KEPT if data.get(name)}


provider_classes = [OpenIdProvider, GitHubProvider]
