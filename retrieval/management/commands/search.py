"""`manage.py search`: what the chat would find, in the terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import IO, Any, cast

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError
from rich import box
from rich.console import Console
from rich.table import Table

from klerai.accounts.models import Person
from klerai.accounts.people import find_person
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.errors import NoSuchKnowledgeBase
from retrieval.models import DEFAULT_SLUG
from retrieval.passages import Found, Passage, found_json
from retrieval.search import MOST, search

_SNIPPET_CHARACTERS = 240


class Command(BaseCommand):
    help = "Searches knowledge bases by keyword and meaning. Without --user it reads what is shared."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--kb", default=DEFAULT_SLUG, metavar="SLUG", help="default: all that may be read")
        parser.add_argument("--user", metavar="EMAIL", help="search as this person")
        parser.add_argument("--limit", type=int, default=5, metavar="N", help=f"passages, 1 to {MOST} (5)")
        parser.add_argument("--explain", action="store_true", help="show the rank and the score of every stage")
        parser.add_argument("--json", action="store_true", help="print what the search endpoint answers")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["limit"] <= MOST:
            raise CommandError(f"--limit is {options['limit']}; it must be from 1 to {MOST}.", returncode=2)
        person = person_named(options["user"])
        try:
            found = async_to_sync(search)(
                person,
                options["query"],
                knowledge_base=options["kb"],
                limit=options["limit"],
                rerank=reranker_by_settings(),
            )
        except NoSuchKnowledgeBase as error:
            raise CommandError(str(error), returncode=2) from error
        if options["json"]:
            self.stdout.write(json.dumps(found_json(found), ensure_ascii=False))
            return
        for sentence in found.degraded:
            self.stderr.write(sentence)
        if not found.passages:
            self.stdout.write("Nothing was found.")
        elif options["explain"]:
            Console(file=cast("IO[str]", self.stdout)).print(_stages(found))
        else:
            for place, passage in enumerate(found.passages, 1):
                self.stdout.write(f"{place}. {_heading(passage)}\n   {_snippet(passage)}\n")


def person_named(email: str | None) -> Person | None:
    """Raises CommandError when there is nobody of that address."""
    if not email:
        return None
    person = find_person(email)
    if person is None:
        raise CommandError(f"There is no account {email}.", returncode=2)
    return person


def _stages(found: Found) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("", justify="right")
    table.add_column("passage", overflow="fold")
    for stage in ("keyword", "vector", "fused", "reranked"):
        table.add_column(stage, justify="right", no_wrap=True)
    for place, passage in enumerate(found.passages, 1):
        stages = (
            _stage(getattr(passage.ranks, stage), getattr(passage.scores, stage))
            for stage in ("keyword", "vector", "fused", "reranked")
        )
        table.add_row(str(place), _heading(passage), *stages)
    return table


def _stage(rank: int | None, score: float | None) -> str:
    if rank is None and score is None:
        return "–"
    return f"{'–' if rank is None else f'#{rank}'} {score:.4f}"


def _heading(passage: Passage) -> str:
    return f"{passage.title} › {passage.section}" if passage.section else passage.title


def _snippet(passage: Passage) -> str:
    text = " ".join(passage.text.split())
    return text if len(text) <= _SNIPPET_CHARACTERS else f"{text[:_SNIPPET_CHARACTERS]}…"
