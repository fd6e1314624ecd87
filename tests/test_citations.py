"""Answers that cite: what a search found can be cited, opened at its passage, and asked about again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings

from chat.models import Run
from chat.wiring import Runtime
from klerai.accounts.models import Person
from retrieval.keyword_index import index_chunks
from retrieval.models import Chunk, Document, KnowledgeBase
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import by_key, by_session
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks
from tests.knowledge_rows import make_knowledge_base
from tests.serving import served, vendor_settings
from tests.test_memory import written

LEAVE = "Everybody has thirty days of leave a year. Unused leave expires in March of the next year.\n\n"
TRAVEL = "Trains are booked in second class. Hotels may cost 140 euros a night in Vienna and 120 elsewhere.\n\n"
SEARCH = Call("knowledge_base_search", {"query": "leave days a year"})


@pytest.fixture(scope="module")
def library(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    with served(start=Runtime.start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def handbook(person: Person) -> Document:
    """A document of this person's, of two passages, and the only one there is to find."""
    KnowledgeBase.objects.filter(owner=None).delete()
    knowledge_base = make_knowledge_base(LEAVE, TRAVEL, owner=person)
    with transaction.atomic():
        index_chunks(knowledge_base, list(Chunk.objects.filter(knowledge_base=knowledge_base).order_by("position")))
    return Document.objects.get(knowledge_base=knowledge_base)


def sent(fake: AnthropicFake) -> list[str]:
    """What the model read in the messages of each call."""
    return [written(seen["body"]) for seen in fake.requests()]


def test_an_answer_cites_its_passages_in_order_of_first_use(library: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(
        calls(Call("knowledge_base_search", {"query": "hotel Vienna"})),
        calls(SEARCH),
        says("Leave is thirty days [2]. Hotels cost 140 euros in Vienna [1][9]. That is all [2]."),
    )
    with nothing_breaks(), by_key(library) as alice:
        document = handbook(alice.person)
        frames = alice.events("How much leave do I have, and what may a hotel cost?")
        end = frames[-1].data
        chunks = "".join(frame.data["text"] for frame in of_type(frames, "content_chunk"))
        shown = alice.get(f"/api/conversations/{of_type(frames, 'run_started')[0].data['conversation_id']}").json()
    assert end["text"] == chunks
    assert end["text"] == "Leave is thirty days [1]. Hotels cost 140 euros in Vienna [2]. That is all [1]."
    first, second = end["citations"]
    assert (first["n"], first["document_id"], first["origin"]) == (1, str(document.pk), "internal")
    assert document.text[first["start"] : first["end"]] == LEAVE
    assert document.text[second["start"] : second["end"]] == TRAVEL
    assert first["quote"] == "Everybody has thirty days of leave a year."
    assert shown["messages"][0]["citations"] == end["citations"]
    assert end["receipt"]["credits"] == 5 + 2 + 2


def test_the_page_links_each_number_to_its_passage_and_shows_that_beside_the_chat(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), says("Thirty days [1]."))
    with nothing_breaks(), by_key(library) as alice, by_key(library) as charlie:
        document = handbook(alice.person)
        answer = alice.answer("How much leave?")
        panel = f"/chat/runs/{answer['run_id']}/sources/1/"
        with by_session(library, alice.person) as browser:
            page = browser.get(f"/chat/{answer['conversation_id']}/").text
            beside = browser.get(panel).text
            none = browser.get(f"/chat/runs/{answer['run_id']}/sources/2/").status_code
            Document.objects.filter(pk=document.pk).delete()
            gone = browser.get(panel).text
        with by_session(library, charlie.person) as browser:
            stranger = browser.get(panel).status_code
    reader = f"/knowledge/{document.knowledge_base.slug}/documents/{document.pk}/?start=0&amp;end={len(LEAVE)}#passage"
    assert f'<span class="cite"><a href="{reader}" data-passage="1" data-panel="{panel}"' in page
    assert "1 source</summary>" in page
    assert re.search(rf"<mark[^>]*>{re.escape(LEAVE.strip())}</mark>", beside)
    assert f'<p class="plain">{TRAVEL.strip()}</p>' in beside
    assert "How it was found" in beside
    assert (none, stranger) == (404, 404)
    assert "The document was deleted since." in gone
    assert "<mark>Everybody has thirty days of leave a year.</mark>" in gone


def test_later_questions_are_sent_the_answer_without_numbers_and_may_cite_what_they_open_again(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(
        calls(Call("knowledge_base_search", {"query": "unused leave, hotels in Vienna"})),
        says("Thirty days [1]."),
        calls(Call("retrieve_full_context", {"id": "q1-t1"})),
        says("Leave is thirty days [1], and hotels cost 140 euros [2]."),
    )
    with nothing_breaks(), by_key(library) as alice:
        document = handbook(alice.person)
        first = alice.answer("How much leave?")
        second = alice.answer("And hotels?", conversation_id=first["conversation_id"])
    question = sent(anthropic_fake)[2]
    assert "[ID:q1-r-sum, ref:q1-r] Thirty days.\n" in question
    assert "Thirty days [1]" not in question
    cited = [document.text[citation["start"] : citation["end"]] for citation in second["citations"]]
    assert sorted(cited) == [LEAVE, TRAVEL]


def test_a_search_finds_nothing_of_a_stranger_whatever_its_arguments(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(library) as alice, by_key(library) as charlie:
        document = handbook(alice.person)
        slug = document.knowledge_base.slug
        anthropic_fake.script(
            calls(
                Call("knowledge_base_search", {"query": LEAVE[:200], "kb_id": slug}),
                Call("knowledge_base_search", {"query": f"{LEAVE[:60]}' OR owner_id IS NOT NULL --", "top_k": 20}),
                Call("knowledge_base_search", {"query": "leave", "owner": str(alice.person.pk)}),
            ),
            says("Nothing [1]."),
        )
        answer = charlie.answer("What does the handbook of Alice say?")
    read = sent(anthropic_fake)[-1]
    assert "thirty days of leave a year. Unused" not in read
    assert f"There is no knowledge base “{slug}”." in read
    assert answer["citations"] == []


@pytest.mark.parametrize(
    ("mode", "question", "is_searched"),
    [
        ("research", "How much leave?", True),
        ("quick", "What does the handbook say about leave?", True),
        ("quick", "How much is that?", False),
        ("assistant", "What does the handbook say about leave?", False),
    ],
)
def test_modes_search_before_the_loop_where_they_should_and_nobody_pays_for_it(
    library: str, anthropic_fake: AnthropicFake, mode: str, question: str, is_searched: bool
) -> None:
    anthropic_fake.script(says("Thirty days [1]."))
    with nothing_breaks(), by_key(library) as alice:
        handbook(alice.person)
        answer = alice.answer(question, mode=mode)
    (body,) = [seen["body"] for seen in anthropic_fake.requests()]
    assert (LEAVE.strip() in written(body)) is is_searched
    assert bool(answer["citations"]) is is_searched
    assert answer["receipt"]["credits"] == 5
    assert ("retrieval" in answer["receipt"]["timings_ms"]) is is_searched
    tools = {tool["name"] for tool in body["tools"]}
    assert ("rag_search" in tools, "knowledge_base_search" in tools) == (mode == "research", mode != "research")


def test_a_question_that_leans_on_the_one_before_is_searched_in_words_that_stand_alone(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    wanted: dict[str, Any] = {"query": "hotel cost in Vienna", "words": ["accommodation", 7]}
    anthropic_fake.script(calls(Call("write_query", wanted)), key="write_query")
    anthropic_fake.script(says("Thirty."), says("140 euros [1]."))
    with nothing_breaks(), by_key(library) as alice:
        handbook(alice.person)
        first = alice.answer("How much leave?", mode="research")
        second = alice.answer("And there?", mode="research", conversation_id=first["conversation_id"])
    (asked,) = anthropic_fake.requests("write_query")
    assert "How much leave?" in written(asked["body"])
    assert second["citations"][0]["quote"].startswith("Hotels may cost 140 euros")


def test_an_answer_that_was_stopped_keeps_the_citations_that_were_shown(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), says("Thirty days [1]. " + "And more words. " * 400, each_ms=20))
    with nothing_breaks(), by_key(library) as alice:
        handbook(alice.person)
        with alice.socket() as socket:
            run_id = socket.ask("How much leave?")
            frames = []
            for frame in socket.frames():
                frames.append(frame)
                if frame.type == "content_chunk" and "[1]" in "".join(
                    f.data["text"] for f in of_type(frames, frame.type)
                ):
                    socket.send({"type": "stop", "run_id": run_id})
    assert frames[-1].data["stopped"] is True
    assert [citation["n"] for citation in frames[-1].data["citations"]] == [1]
    assert Run.objects.get(run_id=run_id).citations == frames[-1].data["citations"]


def test_a_temporary_answer_cites_too_and_leaves_no_citation_in_the_database(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), says("Thirty days [1]."))
    with nothing_breaks(), by_key(library) as alice:
        handbook(alice.person)
        answer = alice.answer("How much leave?", temporary=True)
        with by_session(library, alice.person) as browser:
            page = browser.get(f"/chat/{answer['conversation_id']}/").text
    assert [citation["n"] for citation in answer["citations"]] == [1]
    assert 'data-passage="1"' in page
    assert Run.objects.get(run_id=answer["run_id"]).citations == []
