"""A knowledge base changes over to another embedder while it is searched and written, and after any interruption."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from klerai.database import in_database
from retrieval.embedders.asking import Patience
from retrieval.embedders.voyage import Voyage
from retrieval.embedders.wordllama import NAME as WORDLLAMA
from retrieval.embedders.wordllama import WordLlama
from retrieval.errors import EmbedderFailed
from retrieval.models import Document, KnowledgeBase, Window
from retrieval.reembedding import reembed
from retrieval.window_vectors import live_embedder, write_windows
from tests.fakes.embedding import KEY
from tests.fakes.embedding_server import OK, Step
from tests.fakes.voyage_server import VoyageFake
from tests.knowledge_rows import add_document, chunk_ids, make_knowledge_base, windows_by
from tests.people import make_person
from tests.processes import REPOSITORY
from tests.serving import command_environment, wait_until

VOYAGE = "voyage/voyage-3-large/1024"
TEXTS = [f"Passage {number} says how credits number {number} reset at midnight." for number in range(450)]
AT_ONCE = Patience(attempts=1, first_wait_seconds=0, longest_wait_seconds=0)


@pytest.fixture
def by_wordllama() -> KnowledgeBase:
    """450 chunks with WordLlama's windows."""
    knowledge_base = make_knowledge_base(*TEXTS, embedder=WORDLLAMA)
    asyncio.run(write_windows(knowledge_base.pk, chunk_ids(knowledge_base), WordLlama()))
    return knowledge_base


def test_windows_are_written_once_however_often_they_are_made(by_wordllama: KnowledgeBase) -> None:
    done: list[int] = []
    asyncio.run(write_windows(by_wordllama.pk, chunk_ids(by_wordllama), WordLlama(), report=done.append))
    assert windows_by(by_wordllama) == {WORDLLAMA: 450}
    assert done == [200, 400, 450]
    window = Window.objects.filter(knowledge_base=by_wordllama).select_related("chunk").first()
    assert window is not None
    assert np.allclose(window.vector, asyncio.run(WordLlama().embed(window.chunk.text)), atol=1e-6)


def test_a_long_chunk_has_several_windows_and_an_empty_one_has_one() -> None:
    knowledge_base = make_knowledge_base("word " * 400, "", embedder=WORDLLAMA)
    asyncio.run(write_windows(knowledge_base.pk, chunk_ids(knowledge_base), WordLlama()))
    found = Window.objects.filter(knowledge_base=knowledge_base).order_by("chunk", "position")
    positions = list(found.values_list("position", flat=True))
    assert positions == [*range(len(positions) - 1), 0]
    assert len(positions) >= 4


def test_a_document_deleted_in_the_meantime_is_passed_over(by_wordllama: KnowledgeBase) -> None:
    ids = chunk_ids(by_wordllama)
    Document.objects.filter(knowledge_base=by_wordllama).delete()
    asyncio.run(write_windows(by_wordllama.pk, ids, WordLlama()))
    assert windows_by(by_wordllama) == {}


def test_a_new_knowledge_base_takes_the_embedder_of_the_settings_and_keeps_it(
    settings: Settings, voyage_fake: VoyageFake
) -> None:
    knowledge_base = make_knowledge_base()
    settings.EMBEDDER = "none"
    assert asyncio.run(live_embedder(knowledge_base.pk)) is None
    for setting in ("wordllama", "voyage"):
        settings.EMBEDDER = setting
        taken = asyncio.run(live_embedder(knowledge_base.pk))
        assert taken is not None
        assert taken.name == WORDLLAMA
    KnowledgeBase.objects.filter(pk=knowledge_base.pk).update(embedder=VOYAGE)
    settings.VOYAGE_API_KEY = ""
    with pytest.raises(EmbedderFailed, match="is not set up here"):
        asyncio.run(live_embedder(knowledge_base.pk))


def test_the_command_fills_switches_and_clears_up(by_wordllama: KnowledgeBase, voyage_fake: VoyageFake) -> None:
    said = StringIO()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=said)
    by_wordllama.refresh_from_db()
    assert by_wordllama.embedder == VOYAGE
    assert windows_by(by_wordllama) == {VOYAGE: 450}
    assert "450 passages got new vectors, 450 old vectors were removed" in said.getvalue()
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
    assert windows_by(by_wordllama) == {WORDLLAMA: 450, VOYAGE: 200}
    voyage_fake.reset()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=StringIO())
    assert windows_by(by_wordllama) == {VOYAGE: 450}
    assert sum(len(seen.body["input"]) for seen in voyage_fake.requests) == 250


def test_killed_in_the_middle_it_goes_on_where_it_stopped(by_wordllama: KnowledgeBase, voyage_fake: VoyageFake) -> None:
    voyage_fake.script(OK, OK, OK, Step(is_stalled=True))
    keys = {"VOYAGE_API_KEY": KEY, "VOYAGE_BASE_URL": f"{voyage_fake.url}/v1"}
    command = [sys.executable, "manage.py", "reembed", by_wordllama.slug, "--embedder", "voyage"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=command_environment(**keys)) as process:
        wait_until(lambda: len(voyage_fake.requests) == 4 or process.poll() is not None, what="the fourth request")
        process.kill()
    kept = windows_by(by_wordllama)
    assert kept == {WORDLLAMA: 450, VOYAGE: 200}
    voyage_fake.reset()
    call_command("reembed", by_wordllama.slug, embedder="voyage", stdout=StringIO())
    assert windows_by(by_wordllama) == {VOYAGE: 450}
    assert sum(len(seen.body["input"]) for seen in voyage_fake.requests) == 250


async def test_it_is_searched_by_the_old_vectors_until_the_new_ones_are_all_there(
    voyage_fake: VoyageFake,
) -> None:
    """At every moment that anybody can see, each chunk has a window by the embedder that is live."""
    knowledge_base = await in_database(make_knowledge_base, *TEXTS, embedder=WORDLLAMA)
    await write_windows(knowledge_base.pk, await in_database(chunk_ids, knowledge_base), WordLlama())
    seen: list[tuple[str, int]] = []

    def look() -> None:
        live = KnowledgeBase.objects.get(pk=knowledge_base.pk).embedder
        seen.append((live, windows_by(knowledge_base)[live]))

    async def watch() -> None:
        while not seen or seen[-1][0] == WORDLLAMA:
            await in_database(look)

    watching = asyncio.create_task(watch())
    await reembed(knowledge_base.pk, Voyage(model="voyage-3-large", patience=AT_ONCE), grace_seconds=0)
    await watching
    assert len(seen) > 3
    assert {count for _, count in seen} == {450}


async def test_what_is_ingested_meanwhile_is_caught(voyage_fake: VoyageFake) -> None:
    """Documents come in before, during and after the switch, all by the embedder that was live as they began."""
    knowledge_base = await in_database(make_knowledge_base, *TEXTS[:250], embedder=WORDLLAMA)
    changing = asyncio.create_task(
        reembed(knowledge_base.pk, Voyage(model="voyage-3-large", patience=AT_ONCE), grace_seconds=0)
    )
    for number in range(20):
        ids = await in_database(add_document, knowledge_base, [f"Late passage {number}."])
        await asyncio.sleep(0)
        await write_windows(knowledge_base.pk, ids, WordLlama())
    await changing
    missing = [
        pk
        for pk in await in_database(chunk_ids, knowledge_base)
        if not await in_database(Window.objects.filter(chunk=pk, embedder=VOYAGE).exists)
    ]
    assert missing == []
