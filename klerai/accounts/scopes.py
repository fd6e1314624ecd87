"""Who sends a request, known from its ASGI scope alone, before anything of its body is read."""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.http.cookie import parse_cookie

from klerai.accounts.access import Access
from klerai.accounts.errors import AccessRefused
from klerai.accounts.logins import Login, login_of
from klerai.database import in_database

Scope = MutableMapping[str, Any]


def login_of_scope(scope: Scope) -> Login:
    """Raises Unauthenticated. Says nothing of where a browser's request comes from."""
    return login_of(header_of(scope, b"authorization"), _session(scope))


async def may_write(scope: Scope) -> bool:
    """Whether it is somebody, and no key that may only look."""
    try:
        login: Login = await in_database(login_of_scope, scope)
    except AccessRefused:
        return False
    return login.may((Access.CHAT,))


def header_of(scope: Scope, name: bytes) -> str:
    """Empty when it is missing, and when it was sent twice, since nobody honest does that."""
    values = [value for header, value in scope["headers"] if header.lower() == name]
    return str(values[0].decode("latin1")) if len(values) == 1 else ""


def _session(scope: Scope) -> SessionBase:
    key = parse_cookie(header_of(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME)
    store: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return store
