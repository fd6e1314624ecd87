"""`manage.py load_guide`: the user guide as a shared knowledge base, for a deployment."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from retrieval.ingestion.guide import SLUG, load_guide, pages


class Command(BaseCommand):
    help = "Have the user guide as it is in the files. Costs one query when nothing has changed."

    def handle(self, **_: Any) -> None:
        load_guide()
        self.stdout.write(f"The {len(pages())} pages of the user guide are in “{SLUG}”, or on their way to it.")
