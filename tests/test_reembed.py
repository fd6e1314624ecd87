"""A knowledge base changes over to another embedder while it is searched and written, and after any interruption."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, OuterRef, Subquery
from pytest_django import Settings

from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.embedders.asking import Patience
from retrieval.embedders.voyage import Voyage
from retrieval.embedders.wordllama import NAME as WORDLLAMA
from retrieval.embedders.wordllama import WordLlama
from retrieval.models import DEFAULT_SLUG, Document, KnowledgeBase, Window
from retrieval.reembedding import reembed
from retrieval.tasks import embed_what_lacks_vectors, remove_old_vectors
from retrieval.window_vectors import fill_windows
from tests.documents import taken_in
from tests.fakes.embedding import KEY
from tests.fakes.outside import OK, Answer, Seen, Step, running
from tests.fakes.voyage_server import VoyageFake
from tests.knowledge_rows import add_document, chunk_ids, make_knowledge_base, windows_by
from tests.people import make_person
from tests.processes import REPOSITORY
from tests.serving import command_environment, wait_until

VOYAGE = "voyage/voyage-3-large/1024"
AT_ONCE = Patience(attempts=1, first_wait_seconds=0, longest_wait_seconds=0)


def texts(count: int) -> list[str]:
    """That nobody embedded before."""
    mark = uuid.uuid4().hex
    return [f"Passage {number} of {mark} says how credits number {number} reset." for number in range(count)]


@pytest.fixture
def by_wordllama() -> KnowledgeBase:
    """250 chunks with WordLlama's windows."""
    knowledge_base = make_knowledge_base(*texts(250), embedder=WORDLLAMA)
    asyncio.run(fill_windows(knowledge_base.pk, chunk_ids(knowledge_base), WordLlama()))
    return knowledge_base


def test_windows_are_written_once_however_often_they_are_made(by_wordllama: KnowledgeBase) -> None:
    asyncio.run(fill_windows(by_wordllama.pk, chunk_ids(by_wordllama), WordLlama()))
    assert windows_by(by_wordllama) == {WORDLLAMA: 250}
    window = Window.objects.filter(knowledge_base=by_wordllama).select_related("chunk").first()
    assert window is not None
    assert np.allclose(window.vector, asyncio.run(WordLlama().embed(window.chunk.text)), atol=1e-6)


def test_a_long_chunk_has_several_windows_and_an_empty_one_has_one() -> None:
    knowledge_base = make_knowledge_base("word " * 400, "", embedder=WORDLLAMA)
    asyncio.run(fill_windows(knowledge_base.pk, chunk_ids(knowledge_base), WordLlama()))
    found = Window.objects.filter(knowledge_base=knowledge_base).order_by("chunk", "position")
    positions = list(found.values_list("position", flat=True))
    assert positions == [*range(len(positions) - 1), 0]
    assert len(positions) >= 4


def test_a_document_deleted_in_the_meantime_is_passed_over(by_wordllama: KnowledgeBase) -> None:
    ids = chunk_ids(by_wordllama)
    Document.objects.filter(knowledge_base=by_wordllama).delete()
    asyncio.run(fill_windows(by_wordllama.pk, ids, WordLlama()))
    assert windows_by(by_wordllama) == {}


def test_the_command_fills_switches_and_clears_up(by_wordllama: KnowledgeBase, voyage_fake: VoyageFake) -> None:
    said = StringIO()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=said)
    by_wordllama.refresh_from_db()
    assert by_wordllama.embedder == VOYAGE
    assert "250 passages got new vectors" in said.getvalue()
    assert windows_by(by_wordllama) == {WORDLLAMA: 250, VOYAGE: 250}
    remove_old_vectors(knowledge_base_id=str(by_wordllama.pk))
    assert windows_by(by_wordllama) == {VOYAGE: 250}
    asked = len(voyage_fake.requests)
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=said)
    assert len(voyage_fake.requests) == asked


def test_a_stranger_s_or_unknown_knowledge_base_and_a_missing_key_are_refused(settings: Settings) -> None:
    alice, charlie = make_person("alice"), make_person("charlie")
    hers = make_knowledge_base(owner=alice)
    for options in ({}, {"user": charlie.email}, {"user": "nobody@example.org"}):
        with pytest.raises(CommandError) as refused:
            call_command("reembed", hers.slug, embedder="wordllama", **options)
        assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="VOYAGE_API_KEY is missing"):
        call_command("reembed", hers.slug, embedder="voyage", user=alice.email)
    settings.EMBEDDER = "none"
    with pytest.raises(CommandError, match="--embedder"):
        call_command("reembed", hers.slug, user=alice.email)
    settings.EMBEDDER = "wordllama"
    call_command("reembed", hers.slug, user=alice.email, stdout=StringIO())
    hers.refresh_from_db()
    assert hers.embedder == WORDLLAMA


def test_a_failure_in_the_middle_keeps_the_old_embedder_and_what_was_made(
    by_wordllama: KnowledgeBase, voyage_fake: VoyageFake
) -> None:
    voyage_fake.script(OK, OK, *[Step(401)] * 9)
    with pytest.raises(CommandError, match=r"VOYAGE_API_KEY.*goes on from there"):
        call_command("reembed", by_wordllama.slug, embedder="voyage")
    by_wordllama.refresh_from_db()
    assert by_wordllama.embedder == WORDLLAMA
    assert windows_by(by_wordllama) == {WORDLLAMA: 250, VOYAGE: 200}
    voyage_fake.reset()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=StringIO())
    assert windows_by(by_wordllama) == {WORDLLAMA: 250, VOYAGE: 250}
    assert sum(len(seen.body["input"]) for seen in voyage_fake.requests) == 50


@pytest.mark.thorough
def test_killed_in_the_middle_it_goes_on_where_it_stopped(by_wordllama: KnowledgeBase, voyage_fake: VoyageFake) -> None:
    voyage_fake.script(OK, OK, Step(is_stalled=True))
    keys = {"VOYAGE_API_KEY": KEY, "VOYAGE_BASE_URL": f"{voyage_fake.url}/v1"}
    command = [sys.executable, "manage.py", "reembed", by_wordllama.slug, "--embedder", "voyage"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=command_environment(**keys)) as process:
        try:
            wait_until(lambda: len(voyage_fake.requests) == 3, what="the third request", seconds=60)
        finally:
            process.kill()
    kept = windows_by(by_wordllama)
    assert kept == {WORDLLAMA: 250, VOYAGE: 200}
    voyage_fake.reset()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=StringIO())
    assert windows_by(by_wordllama) == {WORDLLAMA: 250, VOYAGE: 250}
    assert sum(len(seen.body["input"]) for seen in voyage_fake.requests) == 50


async def test_every_chunk_has_a_vector_of_the_live_embedder_at_every_moment(voyage_fake: VoyageFake) -> None:
    knowledge_base = await in_database(make_knowledge_base, *texts(250), embedder=WORDLLAMA)
    await fill_windows(knowledge_base.pk, await in_database(chunk_ids, knowledge_base), WordLlama())
    seen: list[tuple[str, int]] = []

    async def watch() -> None:
        while not seen or seen[-1][0] == WORDLLAMA:
            seen.append(await in_database(_live_windows, knowledge_base))

    watching = asyncio.create_task(watch())
    await reembed(knowledge_base.pk, Voyage(model="voyage-3-large", patience=AT_ONCE))
    await watching
    assert len(seen) > 3
    assert {count for _, count in seen} == {250}


async def test_what_comes_in_before_the_switch_is_caught(voyage_fake: VoyageFake) -> None:
    """A document is stored with the old vectors while the new ones are made of what was there before."""
    knowledge_base = await in_database(make_knowledge_base, *texts(250), embedder=WORDLLAMA)
    late: list[int] = []

    def report(done: int, total: int) -> None:
        if done >= 250 and not late:
            with ThreadPoolExecutor(1) as thread:
                late.extend(thread.submit(add_document, knowledge_base, texts(3)).result())

    filled = await reembed(knowledge_base.pk, Voyage(model="voyage-3-large", patience=AT_ONCE), report=report)
    assert filled == 253
    assert await in_database(_live_windows, knowledge_base) == (VOYAGE, 253)


class Switching(VoyageFake):
    """Has a knowledge base change over while it makes the vectors of a document for it."""

    def answer(self, seen: Seen) -> Answer:
        KnowledgeBase.objects.filter(owner=self.owner).update(embedder=WORDLLAMA)
        return VoyageFake.answer(self, seen)

    owner: Person


def test_a_document_embedded_for_the_embedder_before_gets_the_vectors_it_lacks(settings: Settings) -> None:
    alice = make_person("alice")
    with running(Switching()) as fake:
        fake.owner = alice
        settings.EMBEDDER, settings.VOYAGE_API_KEY, settings.VOYAGE_BASE_URL = "voyage", KEY, f"{fake.url}/v1"
        KnowledgeBase.objects.create(owner=alice, slug=DEFAULT_SLUG, name="Hers", embedder=VOYAGE)
        document = taken_in(alice, "notes.md", " ".join(texts(3)))
    assert (document.status, document.lacks_vectors) == ("ready", True)
    asyncio.run(embed_what_lacks_vectors(0))
    document.refresh_from_db()
    assert not document.lacks_vectors
    assert Window.objects.filter(chunk__document=document, embedder=WORDLLAMA).exists()


def _live_windows(knowledge_base: KnowledgeBase) -> tuple[str, int]:
    """Of one moment: the live embedder, and how many chunks have a window of it."""
    windows = Window.objects.filter(knowledge_base=OuterRef("pk"), embedder=OuterRef("embedder"))
    counted = windows.order_by().values("knowledge_base").annotate(count=Count("chunk", distinct=True))
    rows = KnowledgeBase.objects.annotate(windows=Subquery(counted.values("count")))
    return rows.values_list("embedder", "windows").get(pk=knowledge_base.pk)
