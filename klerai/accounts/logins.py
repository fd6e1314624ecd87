"""Who sends a request: one answer for HTTP, DRF and WebSockets, read from the database every time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils import timezone

from klerai.accounts.access import Access
from klerai.accounts.errors import Unauthenticated
from klerai.accounts.keys import find_key, note_use
from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class KeyLogin:
    """A program with an API key. No browser sends this by itself, so forgery is no matter."""

    person: Person
    key_id: UUID
    scopes: frozenset[str]

    def may(self, opens_to: Iterable[Access]) -> bool:
        return any(scope in self.scopes for scope in opens_to)


@dataclass(frozen=True, slots=True)
class SessionLogin:
    """A browser with a cookie, which other sites can make it send."""

    person: Person

    def may(self, opens_to: Iterable[Access]) -> bool:
        return True


Login = KeyLogin | SessionLogin


def login_of(authorization: str, session: SessionBase) -> Login:
    """A Bearer header alone decides when there is one: a bad key never falls back on the cookie."""
    scheme, _, credential = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return _login_by_key(credential.strip())
    return _login_by_session(session)


def _login_by_key(text: str) -> KeyLogin:
    key = find_key(text)
    if key is None:
        raise Unauthenticated
    note_use(key, now=timezone.now())
    return KeyLogin(key.person, key.pk, frozenset(key.scopes))


def _login_by_session(session: SessionBase) -> SessionLogin:
    request = HttpRequest()
    request.session = session
    person = get_user(request)
    if not isinstance(person, Person):
        raise Unauthenticated
    return SessionLogin(person)
