"""`manage.py create_person EMAIL`: A person with a verified address."""

from __future__ import annotations

from klerai.accounts.management.creation import CreationCommand


class Command(CreationCommand):
    help = "A person with a verified address. The password is printed when none is given."
    is_admin = False
