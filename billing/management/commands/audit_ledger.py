"""`audit_ledger`: say whether the ledger keeps its rules, and block accounts whose balance is wrong."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from billing import audit


class Command(BaseCommand):
    help = "Check every rule of the credit ledger. Exit 1 on any violation."

    def handle(self, *args: Any, **options: Any) -> None:
        found = audit.reconcile()
        counts = audit.counts()
        for violation in found:
            self.stdout.write(f"{violation.id}: {violation.what}")
        if counts.blocked_accounts:
            self.stdout.write(
                f"Blocked accounts: {counts.blocked_accounts}. Their people can spend nothing until an audit finds "
                "the balances right."
            )
        if found:
            raise SystemExit(1)
        self.stdout.write(
            f"The ledger is in order: {counts.transactions} transactions, {counts.entries} entries, "
            f"{counts.people} people."
        )
