"""A question that is answered: the same words, events and receipt at every door."""

from __future__ import annotations

import uuid

import pytest

from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, says
from tests.harness.doors import by_key, by_session
from tests.harness.frames import last_turn, logged, of_type, run_row
from tests.harness.soundness import charged, ended_once, nothing_breaks

SUM = "What is 17.5 % of 2,480?"


def test_an_answer_over_json_comes_with_its_receipt_and_what_is_left(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        answer = alice.answer(SUM)
        assert "434" in answer["response"]
        assert answer["message_id"] == "q1-r"
        assert answer["summary"]
        assert answer["citations"] == []
        assert answer["credits_used"] == 7
        assert answer["credits_remaining"] == 43
        assert [(line["item"], line["credits"]) for line in answer["receipt"]["lines"]] == [("base", 5), ("tool", 2)]
        assert alice.balance() == {"daily": 43, "pack": 0, "held": 0}
        run = run_row(answer["run_id"])
        assert run.state == "completed"
        assert str(run.conversation_id) == answer["conversation_id"]
        assert charged(run) == 7
        assert ended_once(run)["text"] == answer["response"]


def test_the_events_of_an_answer_are_the_same_over_sse_over_a_socket_and_in_the_log(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice, alice.socket() as socket:
        run_id = socket.ask(SUM)
        over_socket = list(socket.frames())
        assert over_socket == logged(run_id) == alice.replay(run_id)
        assert [frame.type for frame in over_socket if frame.type != "status_update"][:3] == [
            "run_started",
            "tool_call_start",
            "tool_call_result",
        ]
        other = str(uuid.uuid4())
        assert alice.events(SUM, run_id=other) == logged(other)


def test_a_browser_and_a_program_of_one_person_see_the_same_run(server: str) -> None:
    with by_key(server) as program, by_session(server, program.person) as browser:
        answer = program.answer(SUM)
        assert browser.run(answer["run_id"]) == program.run(answer["run_id"])
        assert browser.replay(answer["run_id"]) == logged(answer["run_id"])


def test_two_tools_of_one_turn_are_called_paid_and_answered_from(vendor_server: str) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames = alice.events("What is 17.5 % of 2,480 and 12 * 7?")
        starts, results = of_type(frames, "tool_call_start"), of_type(frames, "tool_call_result")
        assert [start.data["id"] for start in starts] == ["q1-t1", "q1-t2"]
        assert [start.data["arguments"] for start in starts] == [
            {"expression": "17.5 % of 2,480"},
            {"expression": "12 * 7"},
        ]
        assert {result.data["id"] for result in results} == {"q1-t1", "q1-t2"}
        assert all(result.data["ok"] and result.data["credits"] == 2 for result in results)
        end = frames[-1].data
        assert end["text"] == last_turn(frames) == "17.5 % of 2,480 = 434. 12 * 7 = 84."
        assert [line.get("ref") for line in end["receipt"]["lines"]] == ["q1", "q1-t1", "q1-t2"]
        assert end["receipt"]["credits"] == 9
        assert end["receipt"]["turns"] == 2
        assert end["receipt"]["tokens"]["input"] > 0
        assert end["receipt"]["cost_usd"] > 0


def test_words_before_a_tool_call_are_activity_and_not_part_of_the_answer(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        anthropic_fake.script(
            Turn((Text("Let me calculate."), Call("calculator", {"expression": "1 + 1"}))), says("It is 2.", each_ms=1)
        )
        frames = alice.events("Add.")
        assert of_type(frames, "content_chunk")[0].data["turn"] == 1
        assert frames[-1].data["text"] == last_turn(frames) == "It is 2."
        run_id = frames[-1].data["receipt"]["run_id"]
        assert alice.run(run_id)["text"] == "It is 2."


def test_reasoning_is_shown_while_it_runs_and_is_no_part_of_the_answer(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(Turn((Thinking("Weighing it."), Text("Yes."))))
    with by_key(vendor_server) as alice:
        frames = alice.events("Is it so?")
    assert "".join(frame.data["text"] for frame in of_type(frames, "reasoning_chunk")) == "Weighing it."
    assert frames[-1].data["text"] == "Yes."


def test_a_finished_run_asked_for_again_by_the_same_body_is_the_same_run(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        run_id = str(uuid.uuid4())
        first = alice.answer(SUM, run_id=run_id)
        assert alice.answer(SUM, run_id=run_id) == first
        assert alice.events(SUM, run_id=run_id) == logged(run_id)
        assert alice.balance()["daily"] == 43


def test_the_order_of_names_in_the_body_does_not_make_another_question(server: str) -> None:
    run_id = str(uuid.uuid4())
    with by_key(server) as alice:
        first = alice.post("/api/chat", {"message": SUM, "tools": True, "run_id": run_id}).json()
        assert alice.post("/api/chat", {"run_id": run_id, "tools": True, "message": SUM}).json() == first


def test_one_run_id_may_be_used_by_two_people_and_is_a_run_of_each(server: str) -> None:
    run_id = str(uuid.uuid4())
    with nothing_breaks(), by_key(server) as alice, by_key(server) as charlie:
        hers = alice.answer(SUM, run_id=run_id)
        his = charlie.answer("Count to 3.", run_id=run_id)
        assert hers["conversation_id"] != his["conversation_id"]
        assert alice.run(run_id)["text"] == hers["response"]
        assert charlie.run(run_id)["text"] == his["response"]


def test_without_tools_none_is_offered_and_none_is_paid(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        answer = alice.answer(SUM, tools=False)
    assert answer["credits_used"] == 5
    assert "tools" not in anthropic_fake.requests()[0]["body"]


def test_the_model_is_shown_what_was_said_before_in_the_conversation(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    with by_key(vendor_server) as alice:
        anthropic_fake.script(says("Blue."))
        first = alice.answer("Which colour is the sky?")
        alice.answer("And at night?", conversation_id=first["conversation_id"])
    said = [str(message["content"]) for message in anthropic_fake.requests()[1]["body"]["messages"]]
    assert len(said) == 3
    assert "Which colour is the sky?" in said[0]
    assert "Blue." in said[1]
    assert "And at night?" in said[2]


@pytest.mark.parametrize(
    "words", ["🎉🎊 👩‍👩‍👧‍👦", "שלום עולם ‏", "a\u0301 zalgo\u0336", "<script>alert(1)</script>", "1\n2\r\n3"]
)
def test_what_a_person_writes_is_asked_and_kept_as_it_is(
    vendor_server: str, anthropic_fake: AnthropicFake, words: str
) -> None:
    anthropic_fake.script(says(f"You said {words}", each_ms=1))
    with nothing_breaks(), by_key(vendor_server) as alice:
        answer = alice.answer(words)
        assert answer["response"] == f"You said {words}"
        thread = alice.get(f"/api/conversations/{answer['conversation_id']}").json()
    assert thread["messages"][0]["message"] == words
    assert words in str(anthropic_fake.requests()[0]["body"]["messages"][0]["content"][0]["text"])


def test_nul_from_the_model_is_left_out_of_what_is_shown_kept_and_replayed(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(
        Turn((Text("One\x00."), Call("calculator\x00", {"expression": "1\x00", "deep": {"k\x00": ["v\x00"]}}))),
        says("Two\x00 words."),
    )
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames = alice.events("Go.")
        assert frames[-1].data["text"] == last_turn(frames) == "Two words."
        assert frames == logged(frames[-1].data["receipt"]["run_id"])
        assert "\\u0000" not in repr(frames)
