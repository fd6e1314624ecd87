"""`grant_credits`: give a person pack credits, with a reason that stays in the ledger."""

from __future__ import annotations

import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing import credits
from klerai.accounts.models import Person
from klerai.accounts.people import find_person

_NOTHING = "Nothing was granted."


class Command(BaseCommand):
    help = "Give a person pack credits, which never expire."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("amount", metavar="N", help=f"a whole number from 1 to {credits.MOST_PER_GRANT:,}")
        parser.add_argument("--reason", required=True, help="why; it stays in the ledger, where the person can read it")

    def handle(self, *args: Any, email: str, amount: str, reason: str, **options: Any) -> None:
        whole = _credits(amount)
        granted = credits.grant(_person(email), amount=whole, reason=_reason(reason))
        balance = granted.balance
        self.stdout.write(
            f"{email} got {whole:,} credits and now has {balance.available:,}: "
            f"{balance.daily:,} of today and {balance.pack:,} from packs."
        )


def _person(email: str) -> Person:
    person = find_person(email) if email.isprintable() else None
    if person is None:
        raise CommandError(f"Nobody has the address {email!a}. {_NOTHING}", returncode=2)
    return person


def _credits(amount: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", amount) or not 1 <= int(amount) <= credits.MOST_PER_GRANT:
        raise CommandError(
            f"{amount!a} is not a whole number from 1 to {credits.MOST_PER_GRANT:,}. {_NOTHING}", returncode=2
        )
    return int(amount)


def _reason(reason: str) -> str:
    text = reason.strip()
    if not text or len(text) > credits.LONGEST_REASON or not text.isprintable():
        raise CommandError(
            f"The reason must be one line of 1 to {credits.LONGEST_REASON} characters. {_NOTHING}", returncode=2
        )
    return text
