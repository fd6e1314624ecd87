"""`manage.py worker`: the queued work of a deployment."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from klerai.serving import work


class Command(BaseCommand):
    help = "Do the queued work: mail, ingestion, schedules."

    def handle(self, **_: Any) -> None:
        work()
