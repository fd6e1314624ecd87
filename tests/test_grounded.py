"""Grounded: it searches first, answers through one tool, and names only what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.test import override_settings
from django.utils import timezone

from chat.compaction import compact_logs
from chat.models import Run
from chat.profiles import PROFILES
from chat.wiring import Runtime, choose_routes
from klerai.database import in_database
from retrieval.models import Document
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, calls, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, last_turn, logged, of_type
from tests.harness.soundness import charged, nothing_breaks
from tests.serving import served, vendor_settings
from tests.test_citations import handbook, sent

SEARCH = Call("knowledge_base_search", {"query": "leave days a year, hotels in Vienna"})
QUESTION = "How much leave do I have, and what may a hotel cost?"
WORDS = "Leave is thirty days [1]. A hotel may cost 140 euros [2]."


@pytest.fixture(scope="module")
def library(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    with served(start=Runtime.start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


@pytest.fixture(scope="module")
def unforced(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server whose model cannot be made to use a tool."""

    async def start() -> Runtime:
        route, _ = await in_database(choose_routes, PROFILES)
        card = replace(route.card, honours_forced_tool=False)
        return await Runtime.start(route=replace(route, card=card, spares=()))

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


@pytest.fixture
def alice(library: str) -> Iterator[Visitor]:
    """Somebody with a handbook of two passages."""
    with nothing_breaks(), by_key(library) as visitor:
        handbook(visitor.person)
        yield visitor


def respond(answer: str = WORDS, sources: Any = (1, 2), **more: Any) -> Call:
    return Call("generate_response", {"sources": list(sources), **more, "answer": answer})


def choices(fake: AnthropicFake) -> list[str]:
    """The tool each call of the model was made to use, or how free it was."""
    chosen = [seen["body"].get("tool_choice") or {"type": "auto"} for seen in fake.requests()]
    return [choice.get("name", choice["type"]) for choice in chosen]


def ended(frames: list[Frame]) -> dict[str, Any]:
    """The end of a run whose log says the same, and whose money is as its receipt says."""
    end = frames[-1].data
    run = Run.objects.get(run_id=end["receipt"]["run_id"])
    assert frames == logged(run.run_id)
    assert charged(run) == end["receipt"]["credits"]
    return end


def items(end: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(line["item"], line.get("note", ""), line["credits"]) for line in end["receipt"]["lines"]]


def test_an_answer_searches_first_and_leaves_through_the_response_tool(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond(confidence_score=0.82)))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert end["text"] == last_turn(frames) == WORDS
    assert end["confidence"] == 0.82
    assert [(cited["n"], cited["origin"]) for cited in end["citations"]] == [(1, "internal"), (2, "internal")]
    assert items(end) == [("base", "", 5), ("tool", "knowledge_base_search", 2), ("tool", "generate_response", 0)]
    assert [tool["name"] for tool in end["receipt"]["tools"]] == ["knowledge_base_search", "generate_response"]
    assert choices(anthropic_fake) == ["knowledge_base_search", "auto"]


def test_the_answer_is_a_call_that_begins_before_its_first_word_and_ends_after_its_last(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond()))
    frames = alice.events(QUESTION, mode="grounded")
    places = {frame.type: frame.seq for frame in frames if frame.data.get("name") != "knowledge_base_search"}
    assert places["tool_call_start"] < places["content_chunk"] < places["tool_call_result"]
    (_, start) = of_type(frames, "tool_call_start")
    (_, result) = of_type(frames, "tool_call_result")
    assert (start.data["id"], start.data["arguments"]) == ("q1-t2", {"sources": [1, 2]})
    assert (result.data["id"], result.data["summary"]) == ("q1-t2", "Answered with 2 sources")


@pytest.mark.parametrize("size", [1, 7, None])
def test_words_arrive_while_the_model_writes_them_however_its_stream_is_cut(
    alice: Visitor, anthropic_fake: AnthropicFake, size: int | None
) -> None:
    answer = 'It\'s “thirty” 😀 \\ "days" [1].\n\n- One [2]\n- Two é'
    arguments = orjson.dumps({"sources": [2, 1], "answer": answer}).decode().replace("😀", "\\ud83d\\ude00")
    anthropic_fake.script(calls(SEARCH), calls(Call("generate_response", arguments), split=size))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert end["text"] == last_turn(frames) == answer.replace("[1]", "[x]").replace("[2]", "[1]").replace("[x]", "[2]")


def test_an_answer_may_hold_marks_of_direction(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    words = "It is called \u2067שלום\u2069 there [1]."
    anthropic_fake.script(calls(SEARCH), calls(respond(words, [1])))
    assert ended(alice.events(QUESTION, mode="grounded"))["text"] == words


def test_an_answer_is_shown_before_it_is_whole(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    slow = replace(respond("word " * 40, [1]), pieces=40)
    anthropic_fake.script(calls(SEARCH), calls(slow, each_ms=20))
    assert len(of_type(alice.events(QUESTION, mode="grounded"), "content_chunk")) > 3


def test_sources_that_come_behind_the_words_hold_them_back_until_they_are_checked(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    late = Call("generate_response", {"answer": WORDS, "sources": [1, 2]})
    invented = Call("generate_response", {"answer": "Never shown.", "sources": [7]})
    anthropic_fake.script(calls(SEARCH), calls(invented), calls(late))
    frames = alice.events(QUESTION, mode="grounded")
    assert ended(frames)["text"] == WORDS
    assert "Never shown" not in repr(frames)
    assert not of_type(frames, "content_replaced")


@pytest.mark.parametrize(
    "named",
    [
        ["2"],
        ["[2]"],
        [{"n": 2}],
        [{"number": "2", "title": "?"}],
        ["https://elsewhere.example/", 2],
    ],
    ids=repr,
)
def test_a_source_may_be_named_in_the_ways_models_name_them(
    alice: Visitor, anthropic_fake: AnthropicFake, named: list[Any]
) -> None:
    anthropic_fake.script(calls(SEARCH), *[calls(respond("It is so [2].", named))] * 2)
    (cited,) = ended(alice.events(QUESTION, mode="grounded"))["citations"]
    assert "Trains" in cited["quote"] or "Hotels" in cited["quote"]


def test_a_source_may_be_named_by_its_document_or_title(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    document = Document.objects.get(knowledge_base__owner=alice.person)
    for name in (document.title, str(document.pk), {"document_id": str(document.pk)}, {"title": document.title}):
        anthropic_fake.script(calls(SEARCH), calls(respond("It is so.", [name])))
        (cited,) = ended(alice.events(QUESTION, mode="grounded"))["citations"]
        assert cited["document_id"] == str(document.pk)


def test_named_sources_are_kept_though_the_words_do_not_number_them(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond("Thirty days of leave. Also [1].", [2])))
    end = ended(alice.events(QUESTION, mode="grounded"))
    assert end["text"] == "Thirty days of leave. Also [2]."
    assert [cited["n"] for cited in end["citations"]] == [1, 2]


def test_an_invented_source_goes_back_once_and_its_answer_is_never_shown(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond("Made up.", [9])), calls(respond()))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert end["text"] == WORDS
    assert "Made up" not in repr(frames)
    assert "Name the sources by the numbers of passages, from 1 to 2" in sent(anthropic_fake)[-1]
    assert items(end)[2:] == [
        ("blocked", "generate_response was not run", 0),
        ("tool", "generate_response", 0),
    ]


def test_a_source_invented_twice_is_left_out_and_the_person_is_told(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond("Made up.", [9])), calls(respond("Leave [1].", [1, "Wiki"])))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert [cited["n"] for cited in end["citations"]] == [1]
    told = [frame.data["message"] for frame in of_type(frames, "status_update")]
    assert "A source the answer named could not be found and was left out." in told
    summary = of_type(frames, "tool_call_result")[-1].data["summary"]
    assert summary == "Answered with 1 source; 1 that nobody found was left out"


def test_plain_words_are_no_answer_and_are_never_shown(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    talks = Turn((Text("Let me look."), SEARCH))
    anthropic_fake.script(talks, says("It is thirty days."), calls(respond()))
    frames = alice.events(QUESTION, mode="grounded")
    assert ended(frames)["text"] == WORDS
    assert "Let me look" not in repr(frames)
    assert "It is thirty days" not in repr(frames)
    assert "Expected tool: generate_response" in sent(anthropic_fake)[-1]
    assert choices(anthropic_fake)[-1] == "generate_response"


@pytest.mark.parametrize(
    "first",
    [says("I know this."), calls(Call("calculator", {"expression": "1 + 1"})), calls(respond("Unfounded.", []))],
    ids=["words", "another tool", "the answer"],
)
def test_a_forgotten_search_is_asked_for_once_more(alice: Visitor, anthropic_fake: AnthropicFake, first: Turn) -> None:
    anthropic_fake.script(first, calls(SEARCH), calls(respond()))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert end["text"] == WORDS
    assert end["receipt"]["credits"] == 7
    assert "Unfounded" not in repr(frames)
    assert choices(anthropic_fake)[:2] == ["knowledge_base_search"] * 2
    assert "Current step: before anything else" in sent(anthropic_fake)[1]


@pytest.mark.parametrize(
    ("turns", "tool"),
    [
        ([says("I know this.")], "knowledge_base_search"),
        ([calls(respond("Unfounded.", []))], "knowledge_base_search"),
        ([calls(SEARCH), says("It is thirty days.")], "generate_response"),
    ],
    ids=["no search", "an answer at once", "words only"],
)
def test_a_duty_forgotten_twice_fails_the_run_and_costs_nothing(
    alice: Visitor, anthropic_fake: AnthropicFake, turns: list[Turn], tool: str
) -> None:
    anthropic_fake.script(*turns, forever=True)
    error = alice.refused(QUESTION, status=502, mode="grounded")
    assert (error["code"], error["tool"]) == ("mandatory_tool_missing", tool)
    assert f"did not use {tool}" in error["message"]
    assert error["receipt"]["credits"] == 0
    assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


BROKEN_OFF = '{"sources": [1], "answer": "Thirty days'
BROKEN = {
    "no JSON": Call("generate_response", BROKEN_OFF),
    "no answer": Call("generate_response", {"sources": [1]}),
    "nothing": Call("generate_response", {"sources": [1], "answer": " "}),
    "a wrong type": Call("generate_response", {"sources": [1], "answer": "Thirty.", "confidence_score": "high"}),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_failed_response_is_taken_back_and_asked_for_once_more(
    alice: Visitor, anthropic_fake: AnthropicFake, broken: Call
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(broken), calls(respond()))
    frames = alice.events(QUESTION, mode="grounded")
    end = ended(frames)
    assert end["text"] == last_turn(frames) == WORDS
    shown = [frame for frame in of_type(frames, "content_chunk") if frame.data["turn"] == 2]
    replaced = of_type(frames, "content_replaced")
    assert [frame.data["text"] for frame in replaced] == [""] * bool(shown)
    assert len(of_type(frames, "tool_call_start")) == len(of_type(frames, "tool_call_result")) == 3
    assert choices(anthropic_fake)[-1] == "generate_response"


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_response_that_fails_twice_fails_the_run_and_costs_nothing(
    alice: Visitor, anthropic_fake: AnthropicFake, broken: Call
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(broken), forever=True)
    run = alice.refused(QUESTION, status=502, mode="grounded")
    assert run["code"] == "response_tool_failed"
    assert run["receipt"]["credits"] == 0
    assert alice.run(run["run_id"])["text"] == ""
    frames = logged(run["run_id"])
    assert len(of_type(frames, "tool_call_start")) == len(of_type(frames, "tool_call_result")) == 3
    assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


def test_a_stream_that_breaks_off_in_the_answer_is_told_again_from_the_start(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    long = replace(respond("word " * 60 + "[1]", [1]), pieces=60)
    anthropic_fake.script(calls(SEARCH), calls(long, error_after=40, each_ms=2), calls(long))
    frames = alice.events(QUESTION, mode="grounded")
    assert ended(frames)["text"] == "word " * 60 + "[1]"
    (replaced,) = of_type(frames, "content_replaced")
    assert replaced.data["text"] == ""
    assert [frame.data["ok"] for frame in of_type(frames, "tool_call_result")] == [True, False, True]


def test_an_answer_beside_other_calls_waits_for_their_results(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH, respond("Too early.", [])), calls(SEARCH, respond("Too early.", [])))
    frames = alice.events(QUESTION, mode="grounded")
    assert "Too early" not in repr(frames)
    assert "called alone and last" in sent(anthropic_fake)[-1]


def test_calls_behind_the_answer_are_not_run(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond(), SEARCH))
    end = ended(alice.events(QUESTION, mode="grounded"))
    assert end["text"] == WORDS
    assert end["receipt"]["credits"] == 7


def test_on_the_last_turn_only_the_response_tool_is_offered(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    counts = [calls(Call("calculator", {"expression": f"{n} + {n}"})) for n in range(8)]
    anthropic_fake.script(calls(SEARCH), *counts, calls(respond()))
    end = ended(alice.events(QUESTION, mode="grounded"))
    assert (end["text"], end["receipt"]["turns"]) == (WORDS, 10)
    last = anthropic_fake.requests()[-1]["body"]
    assert [tool["name"] for tool in last["tools"]] == ["generate_response"]
    assert last["tool_choice"] == {"type": "tool", "name": "generate_response"}


def test_credits_that_do_not_cover_the_search_are_named_and_nothing_is_charged(
    library: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), forever=True)
    with nothing_breaks(), by_key(library, with_packs(5)) as poor:
        error = poor.refused(QUESTION, status=402, mode="grounded")
    assert error["code"] == "insufficient_credits"
    assert error["receipt"]["credits"] == 0


def test_stopped_in_the_answer_it_keeps_its_words_and_sources_and_is_charged(
    alice: Visitor, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(replace(respond("word [1] " * 300, [1]), pieces=300), each_ms=10))
    with alice.asking(QUESTION, mode="grounded") as frames:
        seen: list[Frame] = []
        for frame in frames:
            seen.append(frame)
            if frame.type == "content_chunk" and len(of_type(seen, "content_chunk")) == 3:
                alice.stop(Run.objects.get(person=alice.person).run_id)
    end = seen[-1].data
    assert end["stopped"]
    assert end["text"].startswith("word [1]")
    assert [cited["n"] for cited in end["citations"]] == [1]
    assert end["receipt"]["credits"] == 7


def test_reasoning_is_told_and_comes_before_the_answer(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), Turn((Thinking("Which passage is it?"), respond())))
    frames = alice.events(QUESTION, mode="grounded")
    assert "".join(frame.data["text"] for frame in of_type(frames, "reasoning_chunk")) == "Which passage is it?"
    assert ended(frames)["text"] == WORDS


def test_a_model_that_cannot_be_forced_is_told_what_it_forgot(unforced: str, anthropic_fake: AnthropicFake) -> None:
    counts = [calls(Call("calculator", {"expression": f"{n} + {n}"})) for n in range(6)]
    anthropic_fake.script(says("Thirty."), calls(SEARCH), *counts, says("Thirty."), calls(respond()))
    with nothing_breaks(), by_key(unforced) as bob:
        handbook(bob.person)
        end = ended(bob.events(QUESTION, mode="grounded"))
    assert (end["text"], end["receipt"]["turns"]) == (WORDS, 10)
    assert choices(anthropic_fake) == ["auto"] * 10
    assert "Expected tool: knowledge_base_search" in sent(anthropic_fake)[1]
    assert [tool["name"] for tool in anthropic_fake.requests()[-1]["body"]["tools"]] == ["generate_response"]


def test_a_log_that_was_made_short_holds_the_same_answer(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(Call("generate_response", BROKEN_OFF)), calls(respond()))
    end = ended(alice.events(QUESTION, mode="grounded"))
    run_id = end["receipt"]["run_id"]
    Run.objects.filter(run_id=run_id).update(ended_at=timezone.now() - timedelta(days=2))
    compact_logs()
    started, chunk, last = logged(run_id)
    assert (started.type, chunk.data["text"], last.data) == ("run_started", WORDS, end)


def test_a_temporary_answer_has_its_confidence_and_leaves_none(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond(confidence_score=0.6)))
    answer = alice.answer(QUESTION, mode="grounded", temporary=True)
    thread = alice.get(f"/api/conversations/{answer['conversation_id']}").json()
    assert thread["messages"][0]["confidence"] == 0.6
    assert Run.objects.get(person=alice.person).confidence is None


def test_without_other_tools_its_two_are_still_there(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(respond()))
    assert ended(alice.events(QUESTION, mode="grounded", tools=False))["text"] == WORDS
    offered = [tool["name"] for tool in anthropic_fake.requests()[0]["body"]["tools"]]
    assert offered == ["generate_response", "knowledge_base_search"]


def test_a_model_that_nobody_scripted_answers_from_what_it_found(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    end = ended(alice.events("How many days of leave a year?", mode="grounded"))
    assert end["text"].endswith(" [1]")
    assert end["confidence"] == 0.9
    assert [tool["name"] for tool in end["receipt"]["tools"]] == ["knowledge_base_search", "generate_response"]


def test_a_search_that_is_never_asked_rightly_ends_the_run(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(Call("knowledge_base_search", {"words": "leave"})), forever=True)
    error = alice.refused(QUESTION, status=502, mode="grounded")
    assert (error["code"], error["tool"]) == ("mandatory_tool_missing", "knowledge_base_search")
    assert error["receipt"]["turns"] == 10
