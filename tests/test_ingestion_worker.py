"""The worker: jobs of documents, what a kill leaves, embedders that are away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from pytest_django import Settings

from klerai.accounts.models import Person
from klerai.serving import revive_stalled_jobs
from retrieval.ingestion.accept import accept_upload, delete_document
from retrieval.models import DEFAULT_SLUG, Chunk, Document, IndexedChunk, Window
from retrieval.signals import document_ready
from retrieval.tasks import GAVE_UP, QUEUE, embed_what_lacks_vectors, queue_forgotten
from tests.documents import chunks_of, prose, seen, taken_in
from tests.people import make_alice, make_charlie
from tests.processes import REPOSITORY
from tests.serving import command_environment

TEXT = "".join(f"# Part {number}\n\n{prose(200, f'topic{number}')}\n\n" for number in range(12))
WORKER = f"""
import asyncio, django
django.setup()
from procrastinate.contrib.django import app
async def work():
    async with app.with_connector(app.connector.get_worker_connector()).open_async() as own:
        await own.run_worker_async(queues=["{QUEUE}"], wait=False, install_signal_handlers=False, listen_notify=False)
asyncio.run(work())
"""
SOON_KILLED = ["ingestion_shown_uncommitted"]
KILLED_ELSEWHERE = ["ingestion_embedding", "ingestion_begun", "ingestion_read", "ingestion_embedded", "ingestion_shown"]


@pytest.fixture
def alice(database: object) -> Person:
    return make_alice()


@async_to_sync
async def work() -> None:
    """Do all jobs of documents that wait, as the worker does."""
    async with app.with_connector(app.connector.get_worker_connector()).open_async() as own:  # type: ignore[attr-defined]
        await own.run_worker_async(
            queues=[QUEUE], wait=False, install_signal_handlers=False, listen_notify=False, delete_jobs="successful"
        )


@async_to_sync
async def revive() -> int:
    return await revive_stalled_jobs()


def worker_killed_at(failpoint: str) -> int:
    environment = command_environment(KLERAI_FAILPOINT=failpoint)
    return subprocess.run([sys.executable, "-c", WORKER], cwd=REPOSITORY, env=environment, check=False).returncode


def accepted(person: Person, name: str = "guide.md", text: str = TEXT) -> Document:
    return accept_upload(person, DEFAULT_SLUG, name, [text.encode()])


def now(document: Document) -> Document:
    return Document.objects.get(pk=document.pk)


def job_of(document: Document) -> ProcrastinateJob | None:
    return ProcrastinateJob.objects.filter(args__document_id=str(document.pk)).first()


def test_the_worker_processes_what_was_accepted_and_tells_who_listens(alice: Person) -> None:
    told: list[UUID] = []

    def hear(document_id: UUID, **_: object) -> None:
        told.append(document_id)

    document_ready.connect(hear)
    try:
        good, bad = accepted(alice), accepted(alice, "bad.bin", "\0" * 100)
        work()
    finally:
        document_ready.disconnect(hear)
    assert (now(good).status, now(bad).status) == ("ready", "failed")
    assert good.pk in told
    assert bad.pk not in told
    assert job_of(good) is None
    chunks = chunks_of(good)
    assert Window.objects.filter(chunk__in=chunks).values("chunk").distinct().count() == len(chunks) >= 6
    assert IndexedChunk.objects.filter(chunk__in=chunks).count() == len(chunks)


@pytest.mark.parametrize(
    "failpoint", [*SOON_KILLED, *(pytest.param(name, marks=pytest.mark.thorough) for name in KILLED_ELSEWHERE)]
)
def test_a_worker_killed_half_way_ends_with_the_same_passages_after_a_restart(alice: Person, failpoint: str) -> None:
    work()  # what other tests left
    document = accepted(alice)
    assert worker_killed_at(failpoint) == -9
    if failpoint != "ingestion_shown":
        assert (now(document).status, now(document).text) == ("processing", "")
        assert not Chunk.objects.filter(document=document).exists()
    job = job_of(document)
    assert job is not None
    assert job.status == "doing"
    long_ago = timezone.now() - timedelta(minutes=1)
    ProcrastinateWorker.objects.filter(pk=job.worker_id).update(last_heartbeat=long_ago)
    assert revive() >= 1
    work()
    undisturbed = taken_in(make_charlie(), "guide.md", TEXT)
    assert now(document).status == "ready"
    assert seen(document) == seen(undisturbed)
    windows = [
        list(Window.objects.filter(chunk__document=each).order_by("chunk__position", "position").values_list("vector"))
        for each in (document, undisturbed)
    ]
    assert str(windows[0]) == str(windows[1])


def test_a_job_whose_worker_lives_is_left_alone(alice: Person) -> None:
    document = accepted(alice)
    worker = async_to_sync(app.job_manager.register_worker)()
    ProcrastinateJob.objects.filter(args__document_id=str(document.pk)).update(status="doing", worker_id=worker)
    revive()
    job = job_of(document)
    assert job is not None
    assert job.status == "doing"
    ProcrastinateJob.objects.filter(pk=job.pk).update(status="todo", worker_id=None)
    async_to_sync(app.job_manager.unregister_worker)(worker)


def test_a_document_over_which_workers_die_again_and_again_fails(alice: Person) -> None:
    document = accepted(alice)
    ProcrastinateJob.objects.filter(args__document_id=str(document.pk)).update(attempts=4)
    work()
    assert (now(document).status, now(document).error) == ("failed", GAVE_UP)


def test_a_document_deleted_while_it_waits_is_no_trouble(alice: Person) -> None:
    document = accepted(alice)
    delete_document(document)
    work()
    assert job_of(document) is None


def test_a_document_that_waits_without_a_job_gets_one(alice: Person) -> None:
    document, fresh = accepted(alice), accepted(alice, "fresh.md")
    ProcrastinateJob.objects.filter(args__document_id__in=[str(document.pk), str(fresh.pk)]).delete()
    Document.objects.filter(pk=document.pk).update(updated_at=timezone.now() - timedelta(hours=1))
    queue_forgotten(0)
    queue_forgotten(0)
    assert ProcrastinateJob.objects.filter(args__document_id=str(document.pk)).count() == 1
    assert job_of(fresh) is None


@pytest.mark.thorough
def test_with_the_embedder_away_a_document_is_found_by_its_words_and_embedded_later(
    alice: Person, settings: Settings
) -> None:
    settings.EMBEDDER, settings.OLLAMA_BASE_URL = "ollama", "http://127.0.0.1:9"
    document = taken_in(alice, "guide.md", TEXT)
    assert (document.status, document.error, document.lacks_vectors) == ("ready", "", True)
    assert "words only" in document.note
    assert IndexedChunk.objects.filter(chunk__document=document).exists()
    assert not Window.objects.filter(chunk__document=document).exists()

    settings.EMBEDDER = "wordllama"
    asyncio.run(embed_what_lacks_vectors(0))
    document = now(document)
    assert (document.lacks_vectors, document.note) == (False, "")
    assert Window.objects.filter(chunk__document=document).values("chunk").distinct().count() == len(
        chunks_of(document)
    )


def test_without_an_embedder_nothing_is_missing(alice: Person, settings: Settings) -> None:
    settings.EMBEDDER = "none"
    document = taken_in(alice, "guide.md", TEXT)
    assert (document.status, document.lacks_vectors) == ("ready", False)
