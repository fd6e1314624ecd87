"""Who opens a WebSocket, decided before the handshake is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from klerai.accounts.access import Access
from klerai.accounts.errors import AccessRefused, Forbidden
from klerai.accounts.logins import KeyLogin, Login
from klerai.accounts.models import Person
from klerai.accounts.scopes import header_of, login_of_scope
from klerai.database import in_database

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class PersonSocketMiddleware:
    """Puts `scope["person"]` there, or refuses the handshake with HTTP 403.

    A session counts only with an allowed Origin, because other sites can make a browser send its
    cookie; a key needs none, because they cannot make it send that header.
    """

    def __init__(self, inner: Application) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            login: Login = await in_database(_login_of_scope, scope)
        except AccessRefused:
            await receive()
            await send({"type": "websocket.close"})
            return
        await self.inner({**scope, "person": login.person}, receive, send)


async def still_allowed(scope: Scope) -> bool:
    """Whether the same handshake would be let in now, as the same person; for open sockets, every 30 s."""
    person: Person = scope["person"]
    try:
        login: Login = await in_database(_login_of_scope, scope)
    except AccessRefused:
        return False
    return login.person == person


def _login_of_scope(scope: Scope) -> Login:
    login = login_of_scope(scope)
    if not isinstance(login, KeyLogin) and not _is_allowed_origin(scope):
        raise Forbidden("WebSockets are open to this site's own pages only.")
    if not login.may((Access.CHAT,)):
        raise Forbidden("A WebSocket is for asking, which this key may not.")
    return login


def _is_allowed_origin(scope: Scope) -> bool:
    """Scheme, host and port must be the ones the page itself was served from."""
    host = header_of(scope, b"host").lower()
    origin = header_of(scope, b"origin").lower()
    scheme = "https" if settings.IS_HTTPS else "http"
    own = {settings.BASE_URL.lower()}
    if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        own.add(f"{scheme}://{host}")
    return origin in own
