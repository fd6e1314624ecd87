"""The two accounts of local mode, so that a first look needs no sign-up."""

from __future__ import annotations

from dataclasses import dataclass

from klerai.accounts.models import Person
from klerai.accounts.people import create_verified_person, find_person, random_password

DEMO_EMAIL = "demo@klerai.local"
ADMIN_EMAIL = "admin@klerai.local"


@dataclass(frozen=True, slots=True)
class DemoLogins:
    """What `up` prints: the same password for both."""

    password: str
    demo_email: str = DEMO_EMAIL
    admin_email: str = ADMIN_EMAIL


def ensure_demo_accounts(password: str | None) -> DemoLogins:
    """Make the accounts, or give them `password`, or a new random one, when they are there.

    The same password keeps sessions alive over a restart; another one ends them.
    """
    chosen = password or random_password()
    for email, is_admin in ((DEMO_EMAIL, False), (ADMIN_EMAIL, True)):
        person = find_person(email)
        if person is None:
            create_verified_person(email, chosen, is_admin=is_admin)
        else:
            _let_in(person, chosen, is_admin=is_admin)
    return DemoLogins(chosen)


def _let_in(person: Person, password: str, *, is_admin: bool) -> None:
    if not person.check_password(password):
        person.set_password(password)
    person.is_active = True
    person.is_staff = person.is_superuser = is_admin
    person.save()
