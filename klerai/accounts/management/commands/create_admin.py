"""`manage.py create_admin EMAIL`: An admin: staff with every permission."""

from __future__ import annotations

from klerai.accounts.management.creation import CreationCommand


class Command(CreationCommand):
    help = "An admin: staff with every permission. The password is printed when none is given."
    is_admin = True
