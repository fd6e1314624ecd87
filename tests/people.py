"""The cast: Alice owns things, Charlie is the stranger who must see none of them."""

from __future__ import annotations

import uuid

from allauth.account.models import EmailAddress
from django.conf import settings
from django.test import AsyncClient, Client

from klerai.accounts.keys import create_key
from klerai.accounts.models import Person
from klerai.accounts.people import create_verified_person
from klerai.mail_queue import deliver_mail
from klerai.models import OutgoingMail

PASSWORD = "copper-kettle-17"
BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def new_email(name: str = "alice") -> str:
    """Nobody else's, in any test: rows stay for the whole run."""
    return f"{name}-{uuid.uuid4().hex[:12]}@example.org"


def make_person(name: str = "alice", *, is_admin: bool = False) -> Person:
    """Verified, active, with PASSWORD."""
    return create_verified_person(new_email(name), PASSWORD, is_admin=is_admin)


def make_unverified(name: str = "alice") -> Person:
    person = Person.objects.create_user(new_email(name), PASSWORD)
    EmailAddress.objects.create(user=person, email=person.email, verified=False, primary=True)
    return person


def make_alice() -> Person:
    return make_person("alice")


def make_charlie() -> Person:
    return make_person("charlie")


def sign_in(person: Person, *, enforce_csrf_checks: bool = False) -> Client:
    """A browser with the person's session. `enforce_csrf_checks` makes it a real one in that respect."""
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.force_login(person, backend=BACKEND)
    return client


def sign_in_async(person: Person, *, enforce_csrf_checks: bool = False) -> AsyncClient:
    client = AsyncClient(enforce_csrf_checks=enforce_csrf_checks)
    client.cookies = sign_in(person).cookies
    return client


def session_cookie(client: Client) -> str:
    """The Cookie header that a browser would send."""
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"


def key_text(person: Person, name: str = "tests") -> str:
    return create_key(person, name)[1]


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def suspend(person: Person) -> None:
    Person.objects.filter(pk=person.pk).update(is_active=False)


def deliver_waiting_mail(to: str) -> int:
    """Do at once what the worker would do with the mail to one address; how many there were."""
    waiting = OutgoingMail.objects.filter(message__to=[to])
    ids = [str(mail.pk) for mail in waiting]
    for mail_id in ids:
        deliver_mail(mail_id)
    return len(ids)
