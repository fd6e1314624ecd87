"""A small OpenID Connect server, which is a small GitHub too: `python -m tests.fakes.openid_server --port 0`.

It signs real tokens with a key of its own, and takes a code once, from the client it was made for, with the verifier
that belongs to it.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand

CLIENT_ID, CLIENT_SECRET = "klerai-client", "a-secret-nobody-may-read"
KEY_ID = "key-1"


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody at this server."""

    sub: str
    email: str = ""
    is_verified: bool = True
    name: str = "Al Ice"


@dataclass(frozen=True, slots=True)
class _Grant:
    account: Account
    asked: Mapping[str, str]


@dataclass(slots=True)
class OpenIdFake(OutsideFake):
    """`claims` are put over those of the next tokens, `told` over the profile; `signs_with` is another key than the one
    that is published. `visitor` is who consents at a browser.
    """

    claims: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    signs_with: rsa.RSAPrivateKey | None = None
    visitor: Account | None = None
    _grants: dict[str, _Grant] = field(default_factory=dict)
    _tokens: dict[str, Account] = field(default_factory=dict)

    def consent(self, address: str, account: Account) -> dict[str, str]:
        """What a person does at the sign-in page they were sent to: the parameters they come back with."""
        asked = dict(parse_qsl(urlsplit(address).query))
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._grants[code] = _Grant(account, asked)
        return {"code": code, "state": asked["state"]}

    def answer(self, seen: Seen) -> Answer:
        match seen.path:
            case "/.well-known/openid-configuration":
                return 200, self._configuration()
            case "/authorize":
                return self._page(seen)
            case "/favicon.ico":
                return 200, ""
            case "/keys":
                return 200, {"keys": [_published(_key())]}
            case "/token" | "/login/oauth/access_token":
                return self._token(seen)
            case "/userinfo" | "/api/v3/user" | "/api/v3/user/emails":
                return self._profile(seen)
        return 404, {"error": "not_found"}

    def _page(self, seen: Seen) -> Answer:
        """Where a person at a browser consents: as `visitor`, else as Al."""
        account = self.visitor or Account(sub="1", email="al@example.org")
        given = self.consent(f"{self.url}/authorize?{urlencode(seen.params)}", account)
        back = f"{seen.params['redirect_uri']}?{urlencode(given)}"
        return 200, f'<!doctype html><title>Harbour</title><a href="{escape(back)}">Continue as {account.name}</a>'

    def error(self, step: Step) -> Any:
        return {"error": "server_error"}

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        }

    def _token(self, seen: Seen) -> Answer:
        sent = seen.body
        if (sent.get("client_id"), sent.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        grant = self._grants.pop(sent.get("code", ""), None)
        if grant is None or sent.get("redirect_uri") != grant.asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if _challenge(sent.get("code_verifier", "")) != grant.asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        access = secrets.token_urlsafe(16)
        self._tokens[access] = grant.account
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
        return 200, {**answer, "id_token": self._signed(grant)} if "nonce" in grant.asked else answer

    def _signed(self, grant: _Grant) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "jti": secrets.token_urlsafe(8),
            "nonce": grant.asked["nonce"],
            **_said(grant.account),
            **self.claims,
        }
        return jwt.encode(claims, self.signs_with or _key(), algorithm="RS256", headers={"kid": KEY_ID})

    def _profile(self, seen: Seen) -> Answer:
        account = self._tokens.get(seen.headers.get("authorization", "").partition(" ")[2])
        if account is None:
            return 401, {"error": "invalid_token"}
        match seen.path:
            case "/api/v3/user":
                return 200, {"id": account.sub, "login": "al-ice", "name": account.name, "email": None}
            case "/api/v3/user/emails":
                return 200, [{"email": account.email, "primary": True, "verified": account.is_verified}]
        return 200, {**_said(account), **self.told}


def another_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def _key() -> rsa.RSAPrivateKey:
    """One for all: making one takes longer than a test."""
    return another_key()


def _published(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": KEY_ID, "use": "sig", "alg": "RS256"}


def _said(account: Account) -> dict[str, Any]:
    email = {"email": account.email, "email_verified": account.is_verified} if account.email else {}
    return {"sub": account.sub, "name": account.name, **email}


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    serve_by_hand(OpenIdFake(), __doc__)
