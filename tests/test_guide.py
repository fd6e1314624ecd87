"""The user guide is there from the first start, answers what people ask of it, and costs nothing when unchanged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from retrieval.ingestion.accept import delete_document
from retrieval.ingestion.guide import FOLDER, SLUG, load_guide
from retrieval.models import Document, KnowledgeBase
from retrieval.search import search
from retrieval.tasks import load_user_guide
from tests.fakes.voyage_server import VoyageFake

QUESTIONS = {
    "How do daily credits reset?": "How do daily credits reset?",
    "What does a question cost?": "What does a question cost?",
    "How do I open an earlier result again?": "How do I open an earlier result again?",
    "which file formats can I upload": "Which files can be read?",
    "my server crashed while it was answering": "When the server restarts",
    "lost my phone, how do I sign in": "Recovery codes",
    "what does Stop cost": "Stopping an answer",
    "make an API key": "Making a key",
    "use DeepSeek instead of Claude": "Connecting a model",
    "change to Voyage": "Changing over to another embedder",
    "connect my GitHub account": "Connecting your GitHub account",
    "is my conversation private": "Who can see what",
}


@pytest.fixture(scope="module", autouse=True)
def _only_here() -> Iterator[None]:
    """Everybody reads the guide, so it is not left to other tests."""
    yield
    for document in documents().values():
        delete_document(document)
    KnowledgeBase.objects.filter(owner=None, slug=SLUG).delete()


@pytest.fixture(autouse=True)
def _the_guide_as_it_is() -> None:
    load_guide()


def documents() -> dict[str, Document]:
    return {document.external_id: document for document in Document.objects.filter(knowledge_base__slug=SLUG)}


def test_it_is_shared_and_searchable_as_soon_as_it_is_loaded() -> None:
    guide = KnowledgeBase.objects.get(slug=SLUG)
    assert (guide.owner, guide.name, guide.embedder) == (None, "KlerAI user guide", "wordllama/l2_supercat/256")
    assert len(documents()) == len(list(FOLDER.glob("*.md"))) >= 12
    assert {document.status for document in documents().values()} == {"ready"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_answers_what_people_ask(question: str) -> None:
    """The section is among the passages that reach the model, and its words are in one of them."""
    found = asyncio.run(search(None, question, knowledge_base=SLUG))
    assert not found.degraded
    assert any(f"## {QUESTIONS[question]}" in passage.text for passage in found.passages)


def test_the_answer_about_the_reset_comes_first() -> None:
    for question in ("How do daily credits reset?", "What does a question cost?"):
        first = asyncio.run(search(None, question, knowledge_base=SLUG)).passages[0]
        assert first.section == f"Credits: what a question costs › {question}"


def test_an_unchanged_guide_costs_one_query() -> None:
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        call_command("load_guide", stdout=StringIO())
    assert len(queries) == 1
    assert time.perf_counter() - began < 0.5


def test_a_changed_page_replaces_its_document_and_a_page_that_is_gone_goes(tmp_path: Path) -> None:
    before = documents()
    for file in FOLDER.glob("*.md"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "16-privacy.md").unlink()
    (tmp_path / "04-modes.md").write_text("# Modes\n\nThe mode Zanzibar is for sailors.\n")
    load_guide(tmp_path)
    after = documents()
    assert before.keys() - after.keys() == {"guide/privacy"}
    changed = {name for name in after if after[name].updated_at != before[name].updated_at}
    assert changed == {"guide/modes"}
    assert after["guide/modes"].pk == before["guide/modes"].pk
    first = asyncio.run(search(None, "Zanzibar", knowledge_base=SLUG)).passages[0]
    assert first.external_id == "guide/modes"


def test_where_vectors_come_from_elsewhere_the_start_does_not_wait_for_them(
    settings: Settings, voyage_fake: VoyageFake, tmp_path: Path
) -> None:
    settings.EMBEDDER = "voyage"
    (tmp_path / "01-only.md").write_text("# Only\n\nOne page.\n")
    load_guide(tmp_path)
    assert "guide/only" not in documents()
    assert not voyage_fake.requests
    asyncio.run(load_user_guide())
    assert len(documents()) > 12
