"""What the settings say about signing in through others: Google, GitHub, and any OpenID Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from klerai.env import BadSetting, Environment

Kind = Literal["openid_connect", "github"]
GOOGLE = "https://accounts.google.com"
GITHUB = "https://github.com"


@dataclass(frozen=True, slots=True)
class SocialLogin:
    """One of the ways in. `id` stands in its addresses and on the rows of those who came by it."""

    id: str
    name: str
    kind: Kind
    server_url: str
    client_id: str
    secret: str = field(repr=False)

    @property
    def origin(self) -> str:
        """Where its sign-in page is, to which a form of ours leads."""
        parts = urlsplit(self.server_url)
        return f"{parts.scheme}://{parts.netloc}"


def social_logins(env: Environment) -> tuple[SocialLogin, ...]:
    """Those that are set up. Raises BadSetting for one of which a part is missing."""
    return tuple(_set_up(env))


def _set_up(env: Environment) -> Iterator[SocialLogin]:
    if found := _client(env, "GOOGLE"):
        yield SocialLogin("google", "Google", "openid_connect", GOOGLE, *found)
    if found := _client(env, "GITHUB"):
        yield SocialLogin("github", "GitHub", "github", env.url("GITHUB_SERVER_URL", GITHUB), *found)
    server_url = env.url("OIDC_SERVER_URL")
    if found := _client(env, "OIDC"):
        if not server_url:
            raise BadSetting("OIDC_SERVER_URL", "is missing, and OIDC_CLIENT_ID is set. It is the issuer's address.")
        yield SocialLogin("oidc", env.text("OIDC_NAME", "single sign-on"), "openid_connect", server_url, *found)
    elif server_url:
        raise BadSetting("OIDC_CLIENT_ID", "is missing, and OIDC_SERVER_URL is set. The server gives it out.")


def _client(env: Environment, prefix: str) -> tuple[str, str] | None:
    client_id, secret = env.text(f"{prefix}_CLIENT_ID"), env.secret(f"{prefix}_CLIENT_SECRET")
    if bool(client_id) != bool(secret):
        missing, there = ("SECRET", "ID") if client_id else ("ID", "SECRET")
        raise BadSetting(f"{prefix}_CLIENT_{missing}", f"is missing, and {prefix}_CLIENT_{there} is set.")
    return (client_id, secret) if client_id else None
