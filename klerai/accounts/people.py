"""People made by the operator: their address counts as verified."""

from __future__ import annotations

import secrets

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from klerai.accounts.models import Person

PASSWORD_BYTES = 12


class BadEmail(Exception):
    """`email` is no e-mail address."""

    def __init__(self, email: str) -> None:
        super().__init__(email)
        self.email = email


class PersonExists(Exception):
    """`email` is taken."""

    def __init__(self, email: str) -> None:
        super().__init__(email)
        self.email = email


def random_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)


def find_person(email: str) -> Person | None:
    return Person.objects.filter(email=email.strip().lower()).first()


@transaction.atomic
def create_verified_person(email: str, password: str, *, is_admin: bool = False) -> Person:
    """Raises BadEmail or PersonExists. An admin is staff with every permission."""
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise BadEmail(email) from error
    if find_person(email) is not None:
        raise PersonExists(email)
    make = Person.objects.create_superuser if is_admin else Person.objects.create_user
    person = make(email, password)
    EmailAddress.objects.create(user=person, email=email, verified=True, primary=True)
    person.refresh_from_db()
    return person
