"""`manage.py check_invariants`: exit 1 when something that must always hold does not."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from chat.invariants import violations


class Command(BaseCommand):
    help = "Check that the ledger balances and that every run, event and receipt agrees with it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        found = violations()
        if options["json"]:
            self.stdout.write(json.dumps({"ok": not found, "violations": [asdict(one) for one in found]}, default=str))
        else:
            for one in found:
                self.stderr.write(f"{one.id}: {one.subject}: {one.what}")
            self.stdout.write(f"{len(found)} violations." if found else "Everything holds.")
        sys.exit(1 if found else 0)
