"""`manage.py ingest`: files, folders and corpora into a knowledge base, without a worker."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_slug
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from klerai.accounts.models import Person
from retrieval.ingestion.accept import Outcome
from retrieval.ingestion.filling import FAILED, Filled, fill, size_of
from retrieval.ingestion.folders import Found, files_under
from retrieval.knowledge import filled_by_operator
from retrieval.models import DEFAULT_SLUG, KnowledgeBase

BAD_USAGE, SOME_FAILED = 2, 1
LONGEST_SLUG = 64
MOST_SHOWN = 20  # rows of one corpus that failed


class Command(BaseCommand):
    help = "Add files, folders and corpora (.jsonl) to a knowledge base. Exit 1 when any failed, 2 on bad usage."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=_path)
        parser.add_argument("--kb", metavar="SLUG", type=_slug, default=DEFAULT_SLUG, help=f"default {DEFAULT_SLUG}")
        parser.add_argument("--user", metavar="EMAIL", help="whose it is; without, everybody reads it")

    def handle(self, *args: Any, **options: Any) -> None:
        person = None
        if options["user"]:
            person = Person.objects.filter(email=options["user"].lower(), is_active=True).first()
            if person is None:
                raise CommandError(f"There is no account {options['user']}.", returncode=BAD_USAGE)
        logging.getLogger("retrieval").setLevel(logging.ERROR)  # the lines below say it all
        knowledge_base = filled_by_operator(person, options["kb"])
        files = [found for path in options["paths"] for found in files_under(path)]
        report = _Report(files)
        asyncio.run(_fill(knowledge_base, files, report))
        report.close()
        if report.counts[FAILED]:
            sys.exit(SOME_FAILED)


async def _fill(knowledge_base: KnowledgeBase, files: Sequence[Found], report: _Report) -> None:
    for found in files:
        async for filled in fill(knowledge_base, found):
            report.take(filled)
        report.end_file(found)


class _Report:
    """A line for each file on stdout, the bar on stderr, and a summary at the end."""

    def __init__(self, files: Sequence[Found]) -> None:
        self.counts: Counter[str] = Counter()
        self.passages = 0
        self._began = time.monotonic()
        self._of_file: Counter[str] = Counter()
        self._done = 0
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=sum(size_of(found.path) for found in files) or 1)
        self._bar.start()

    def take(self, filled: Filled) -> None:
        self.counts[filled.outcome] += 1
        self._of_file[filled.outcome] += 1
        self.passages += filled.passages
        self._bar.update(self._task, completed=self._done + filled.at, description=filled.name[-40:])
        if not filled.place:
            words = filled.reason or (_count(filled.passages, "passage") if filled.passages else "")
            self._say(f"{filled.outcome:<10} {filled.name}" + (f": {words}" if words else ""))
        elif filled.outcome == FAILED and self._of_file[FAILED] <= MOST_SHOWN:
            self._say(f"{FAILED:<10} {filled.name}, {filled.place}: {filled.reason}")

    def end_file(self, found: Found) -> None:
        if sum(self._of_file.values()) > 1:
            self._say(f"{'corpus':<10} {found.name}: {_sums(self._of_file)}")
        self._of_file.clear()
        self._done += size_of(found.path)

    def close(self) -> None:
        self._bar.stop()
        seconds = time.monotonic() - self._began
        passages = _count(self.passages, "passage")
        print(f"{_sums(self.counts).capitalize()}; {passages} in {seconds:.1f} s ({self.passages / seconds:,.0f}/s).")

    def _say(self, line: str) -> None:
        print("".join(character if character.isprintable() else "?" for character in line))


def _sums(counts: Counter[str]) -> str:
    return ", ".join(f"{outcome} {counts[outcome]:,}" for outcome in (*Outcome, FAILED))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _path(text: str) -> Path:
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no {text}")
    return path


def _slug(text: str) -> str:
    try:
        validate_slug(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError("use letters, digits, - and _") from error
    if len(text) > LONGEST_SLUG:
        raise argparse.ArgumentTypeError(f"use at most {LONGEST_SLUG} characters")
    return text
