"""The ways a person comes in: as a program with a key, as a browser with a session."""

from __future__ import annotations

from django.conf import settings

from klerai.accounts.models import Person
from tests.people import bearer, key_text, session_cookie, sign_in

CSRF = "c" * 32


def key_headers(person: Person) -> dict[str, str]:
    return bearer(key_text(person))


def session_headers(url: str, person: Person) -> dict[str, str]:
    """What a page of this site sends: both cookies, the token of the page and where it came from."""
    cookies = f"{session_cookie(sign_in(person))}; {settings.CSRF_COOKIE_NAME}={CSRF}"
    return {"Cookie": cookies, "X-CSRFToken": CSRF, "Origin": url}
