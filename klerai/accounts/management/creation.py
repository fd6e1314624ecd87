"""What `create_person` and `create_admin` share."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser

from klerai.accounts.people import BadEmail, PersonExists, create_verified_person, random_password


class CreationCommand(BaseCommand):
    is_admin: ClassVar[bool]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--password", help="A random one is made and printed without it.")

    def handle(self, *, email: str, password: str | None, **_: Any) -> None:
        chosen = password or random_password()
        try:
            person = create_verified_person(email, chosen, is_admin=self.is_admin)
        except BadEmail as error:
            raise CommandError(f"{error.email} is not an e-mail address. Nobody was created.", returncode=2) from error
        except PersonExists as error:
            raise CommandError(f"{error.email} has an account already. Nothing was changed.", returncode=2) from error
        self.stdout.write(f"{person.email} can sign in." if password else f"{person.email} can sign in with: {chosen}")
