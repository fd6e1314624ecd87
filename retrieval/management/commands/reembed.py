"""`manage.py reembed SLUG`: change a knowledge base over to another embedder."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from klerai.accounts.models import Person
from klerai.accounts.people import find_person
from retrieval.embedders.base import Embedder
from retrieval.embedders.choosing import embedder_of_kind
from retrieval.embedders.kinds import KEYS, KINDS
from retrieval.errors import EmbedderFailed, NoSuchKnowledgeBase
from retrieval.knowledge import knowledge_bases_of
from retrieval.models import KnowledgeBase
from retrieval.reembedding import reembed
from retrieval.tasks import remove_old_vectors

BAD_USAGE = 2
GRACE_SECONDS = 60


class Command(BaseCommand):
    help = (
        "Give a knowledge base the vectors of another embedder. It can be searched all the time, and after an "
        "interruption the same command goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--embedder", choices=KINDS, help="default: the one of the settings")
        parser.add_argument("--user", metavar="EMAIL", help="whose knowledge base it is; default a shared one")

    def handle(self, *, slug: str, embedder: str | None, user: str | None, **_: Any) -> None:
        chosen = _embedder(embedder or settings.EMBEDDER)
        owner = _person(user)
        knowledge_base = knowledge_bases_of(owner).filter(owner=owner, slug=slug).first()
        if knowledge_base is None:
            raise CommandError(str(NoSuchKnowledgeBase(slug)), returncode=BAD_USAGE)
        try:
            filled = asyncio.run(_reembed(knowledge_base, chosen))
        except EmbedderFailed as error:
            raise CommandError(f"{error} What was made is kept; the same command goes on from there.") from error
        except KnowledgeBase.DoesNotExist as error:
            raise CommandError(f"“{slug}” was deleted in the meantime.") from error
        remove_old_vectors.configure(schedule_in={"seconds": GRACE_SECONDS}).defer(
            knowledge_base_id=str(knowledge_base.pk)
        )
        self.stdout.write(f"“{slug}” is searched by {chosen.name} now; {filled} passages got new vectors.")


async def _reembed(knowledge_base: KnowledgeBase, embedder: Embedder) -> int:
    """With a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"Passages of “{knowledge_base.slug}”", total=None)

        def report(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)

        return await reembed(knowledge_base.pk, embedder, report=report)


def _embedder(kind: str) -> Embedder:
    embedder = embedder_of_kind(kind)
    if embedder is not None:
        return embedder
    if kind in KEYS:
        raise CommandError(f"{KEYS[kind]} is missing, and the embedder {kind} needs it.", returncode=BAD_USAGE)
    raise CommandError("KLERAI_EMBEDDER is none. Say which one you want with --embedder.", returncode=BAD_USAGE)


def _person(email: str | None) -> Person | None:
    person = find_person(email) if email else None
    if email and person is None:
        raise CommandError(f"Nobody here has the address {email}. Nothing was changed.", returncode=BAD_USAGE)
    return person
