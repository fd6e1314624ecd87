"""`manage.py create_api_key EMAIL`: a key for a person's programs, printed once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from klerai.accounts.access import Access
from klerai.accounts.keys import create_key
from klerai.accounts.people import find_person


class Command(BaseCommand):
    help = "Make an API key. It is printed once, alone on the last line, and kept nowhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="default", help="What the key is for; shown in the settings.")
        parser.add_argument(
            "--scope", action="append", choices=Access.values, help="What it may do; may be repeated. Without it, all."
        )

    def handle(self, *, email: str, name: str, scope: list[str] | None, **_: Any) -> None:
        person = find_person(email)
        if person is None:
            raise CommandError(f"Nobody here has the address {email}. No key was made.", returncode=2)
        if len(name) > 80:
            raise CommandError("The name of a key has at most 80 characters. No key was made.", returncode=2)
        key, text = create_key(person, name, scope or Access.values)
        self.stdout.write(f"The key “{key.name}” of {person.email}; it is not shown again:")
        self.stdout.write(text)
