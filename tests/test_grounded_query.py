"""POST /api/chat/query: a grounded answer with sources and confidence; sessions and errors as at other doors."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from chat.models import Run
from retrieval.models import KnowledgeBase
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.knowledge import add_document, make_base
from tests.harness.soundness import charged, nothing_breaks
from tests.test_citations import sent
from tests.test_grounded import SEARCH, WORDS, respond
from tests.test_grounded import alice as alice
from tests.test_grounded import library as library

QUERY = "How much leave do I have?"


def ask(visitor: Visitor, query: object = QUERY, *, status: int = 200, **body: Any) -> dict[str, Any]:
    response = visitor.post("/api/chat/query", {"query": query, **body})
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found if status == 200 else found["error"]


def test_an_answer_has_sources_confidence_and_where_they_come_from(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    lies = {"used_internal_kb": False, "used_external_kb": True}
    anthropic_fake.script(calls(SEARCH), calls(respond(confidence_score=0.9, **lies)))
    answer = ask(alice)
    assert answer["answer"] == WORDS
    assert [source["n"] for source in answer["sources"]] == [1, 2]
    assert {source["origin"] for source in answer["sources"]} == {"internal"}
    assert answer["confidence_score"] == 0.9
    assert (answer["used_internal_kb"], answer["used_external_kb"]) == (True, False)
    assert answer["credits_used"] == answer["receipt"]["credits"] == 7
    assert charged(Run.objects.get(person=alice.person)) == 7


@pytest.mark.parametrize(("given", "said"), [(1.7, 1.0), (-1, 0.0), (None, None)])
def test_confidence_is_between_0_and_1_or_not_said(
    alice: Visitor, anthropic_fake: AnthropicFake, given: float | None, said: float | None
) -> None:
    more = {} if given is None else {"confidence_score": given}
    anthropic_fake.script(calls(SEARCH), calls(respond(**more)))
    assert ask(alice)["confidence_score"] == said


def test_a_session_keeps_its_history(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond("Thirty days [1].", [1])))
    first = ask(alice)
    anthropic_fake.script(calls(SEARCH), calls(respond("Until March [1].", [1])))
    second = ask(alice, "Until when?", session_id=first["session_id"])
    assert second["session_id"] == first["session_id"]
    assert "Thirty days." in sent(anthropic_fake)[2]
    thread = alice.get(f"/api/conversations/{first['session_id']}").json()
    assert [message["text"] for message in thread["messages"]] == ["Thirty days [1].", "Until March [1]."]
    assert thread["mode"] == "grounded"


def test_a_knowledge_base_that_is_named_is_the_only_one_searched(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    other = make_base(alice.person)
    add_document(other, "The canteen opens at eleven and closes at two.", title="Canteen")
    elsewhere = Call("knowledge_base_search", {"query": "leave days, canteen", "kb_id": "default_kb"})
    anthropic_fake.script(calls(elsewhere), calls(respond("At eleven [1].", [1])))
    answer = ask(alice, "When does it open?", kb_id=other.slug)
    assert [source["title"] for source in answer["sources"]] == ["Canteen"]
    assert "thirty days of leave" not in sent(anthropic_fake)[-1]


def test_a_foreign_session_or_knowledge_base_is_as_one_that_does_not_exist(
    alice: Visitor, library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond()))
    session = ask(alice)["session_id"]
    slug = KnowledgeBase.objects.get(owner=alice.person).slug
    with by_key(library) as charlie:
        hers = [ask(charlie, status=404, session_id=session), ask(charlie, status=404, kb_id=slug)]
        nowhere = [ask(charlie, status=404, session_id=str(uuid.uuid4())), ask(charlie, status=404, kb_id="none")]
        assert hers == nowhere
        assert not Run.objects.filter(person=charlie.person).exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": 5}, "query"),
        ({"query": "  "}, "query"),
        ({"query": QUERY, "session_id": 7}, "session_id"),
        ({"query": QUERY, "kb_id": 7}, "kb_id"),
        ({"query": QUERY, "kb_id": ""}, "kb_id"),
        ({"query": QUERY, "run_id": "x"}, "run_id"),
    ],
)
def test_what_cannot_be_read_is_named_as_this_door_names_it(library: str, body: dict[str, Any], field: str) -> None:
    with by_key(library) as bob:
        error = bob.post("/api/chat/query", body).json()["error"]
    assert (error["code"], list(error["fields"])) == ("invalid", [field])
    assert error["message"].startswith(f"{field}: ")


def test_it_refuses_to_answer_without_its_two_tools(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("Thirty days."), forever=True)
    error = ask(alice, status=502)
    assert (error["code"], error["tool"]) == ("mandatory_tool_missing", "knowledge_base_search")
    anthropic_fake.script(calls(SEARCH), calls(Call("generate_response", {"answer": "Thirty."})), forever=True)
    assert ask(alice, status=502)["code"] == "response_tool_failed"
    assert alice.balance()["daily"] == 50


def test_other_refusals_are_those_of_other_doors(library: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(library, with_packs(4)) as poor:
        assert ask(poor, status=402)["required"] == 5
        assert poor.get("/api/chat/query").status_code == 405
        assert poor.http.post("/api/chat/query", content=b"query=x").status_code == 415
        assert (
            poor.http.post("/api/chat/query", json={"query": QUERY}, headers={"Authorization": ""}).status_code == 401
        )


def test_the_same_run_id_is_answered_and_charged_once(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond()))
    key = str(uuid.uuid4())
    assert ask(alice, run_id=key) == ask(alice, run_id=key)
    assert ask(alice, "Another?", run_id=key, status=409)["code"] == "run_conflict"
    assert alice.balance()["daily"] == 43


def test_without_a_model_it_searches_quotes_and_says_what_it_is(server: str) -> None:
    with nothing_breaks(), by_key(server) as bob:
        base = make_base(bob.person)
        add_document(base, "Everybody has thirty days of leave a year.", title="Handbook")
        answer = ask(bob, "How many days of leave a year?", kb_id=base.slug)
        nothing = ask(bob, "Who wrote Faust?", kb_id=base.slug)
    assert "thirty days of leave a year. [1]" in answer["answer"]
    assert "without a model" in answer["answer"]
    assert [source["title"] for source in answer["sources"]] == ["Handbook"]
    assert (answer["confidence_score"], answer["credits_used"]) == (0.75, 7)
    assert (nothing["sources"], nothing["used_internal_kb"]) == ([], False)


def test_it_stands_in_the_schema(server: str) -> None:
    with by_session(server) as browser:
        schema = browser.get("/api/schema/?format=json").json()
    asked = schema["paths"]["/api/chat/query"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(asked["properties"]) >= {"query", "session_id", "kb_id"}
