"""The ways a run ends other than by an answer: what each is called, what it costs, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.test import override_settings

from chat.models import Item, Run
from chat.profiles import PROFILES, QUICK
from chat.wiring import Runtime
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Turn, calls, fails, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, last_turn, logged, of_type, run_row
from tests.harness.soundness import charged, ended_once, nothing_breaks
from tests.serving import served, vendor_settings

ADD = calls(Call("calculator", {"expression": "17.5 % of 2,480"}))
SILENCE = Turn((Text(""),))
LONG = " ".join(f"word{number}" for number in range(400))


@contextmanager
def talking(visitor: Visitor, *, until: str = "content_chunk", **body: object) -> Iterator[tuple[str, Iterator[Frame]]]:
    """A run that has come as far as an event of the kind `until`, and the events after it."""
    with visitor.asking("Tell me at length.", **body) as frames:
        conversation_id = ""
        for frame in frames:
            conversation_id = frame.data.get("conversation_id", conversation_id)
            if frame.type == until:
                break
        run = Run.objects.get(conversation_id=conversation_id, state__in=Run.LIVE)
        yield str(run.run_id), frames


def replayed(visitor: Visitor, run_id: str) -> tuple[int, dict[str, object]]:
    """What the JSON door says of a run that has ended: its status and its body."""
    response = visitor.ask("Tell me at length.", run_id=run_id)
    return response.status_code, response.json()


def test_a_run_stopped_after_words_of_its_answer_keeps_them_and_is_charged(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says(LONG, each_ms=10))
    with nothing_breaks(), by_key(vendor_server) as alice:
        with talking(alice) as (run_id, frames):
            assert alice.stop(run_id).status_code == 200
            end = list(frames)[-1]
        assert end.type == "message_complete"
        assert end.data["stopped"]
        assert LONG.startswith(end.data["text"])
        assert end.data["text"] == last_turn(logged(run_id))
        run = run_row(run_id)
        assert run.state == "stopped"
        assert charged(run) == 5
        assert alice.run(run_id)["text"] == end.data["text"]
        conversation = alice.get(f"/api/conversations/{run.conversation_id}").json()
        assert conversation["messages"][0]["text"] == end.data["text"]


def test_stopping_closes_the_connection_to_the_vendor(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says(LONG, each_ms=10))
    with by_key(vendor_server) as alice, talking(alice) as (run_id, frames):
        alice.stop(run_id)
        list(frames)
    assert anthropic_fake.requests()[0]["closed_early"]


def test_a_run_stopped_before_any_word_costs_nothing(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says(LONG, stall="headers"))
    with nothing_breaks(), by_key(vendor_server) as alice:
        with talking(alice, until="status_update") as (run_id, frames):
            alice.stop(run_id)
            end = list(frames)[-1]
        assert (end.type, end.data["code"]) == ("error", "stopped")
        run = run_row(run_id)
        assert run.state == "stopped"
        assert charged(run) == 0
        assert end.data["receipt"]["lines"][0]["note"]
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


def test_words_before_a_tool_call_are_no_answer_so_stopping_then_costs_nothing(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(
        Turn((Text("Let me calculate."), Call("calculator", {"expression": "1 + 1"}))), says(LONG, stall="headers")
    )
    with nothing_breaks(), by_key(vendor_server) as alice:
        with talking(alice, until="tool_call_result") as (run_id, frames):
            alice.stop(run_id)
            end = list(frames)[-1]
        assert (end.type, end.data["code"]) == ("error", "stopped")
        assert charged(run_row(run_id)) == 0
        assert not run_row(run_id).items.filter(kind__in=[Item.Kind.RESPONSE, Item.Kind.PARTIAL]).exists()


def test_stopping_a_run_that_has_ended_changes_nothing(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        answer = alice.answer("Count to 3.")
        before = logged(answer["run_id"])
        assert alice.stop(answer["run_id"]).json()["state"] == "completed"
        assert logged(answer["run_id"]) == before


def test_stop_over_the_socket_is_the_same_stop(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says(LONG, each_ms=10))
    with nothing_breaks(), by_key(vendor_server) as alice, alice.socket() as socket:
        run_id = socket.ask("Tell me at length.")
        frames = socket.frames()
        next(frame for frame in frames if frame.type == "content_chunk")
        socket.send({"type": "stop", "run_id": run_id})
        end = list(frames)[-1]
        assert end.data["stopped"]
        assert charged(run_row(run_id)) == 5


def test_a_stopped_run_says_so_at_the_json_door_with_its_status(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    run_id = "00000000-0000-4000-8000-00000000000a"
    anthropic_fake.script(says(LONG, each_ms=10))
    with by_key(vendor_server) as alice:
        with talking(alice, run_id=run_id) as (_, frames):
            alice.stop(run_id)
            text = list(frames)[-1].data["text"]
        status, body = replayed(alice, run_id)
        assert (status, body["response"]) == (200, text)


def test_a_run_stopped_without_words_is_a_conflict_at_the_json_door(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    run_id = "00000000-0000-4000-8000-00000000000b"
    anthropic_fake.script(says(LONG, stall="headers"))
    with by_key(vendor_server) as alice:
        with talking(alice, until="status_update", run_id=run_id) as (_, frames):
            alice.stop(run_id)
            list(frames)
        error = alice.refused("Tell me at length.", status=409, run_id=run_id)
        assert error["code"] == "stopped"
        assert error["receipt"]["credits"] == 0


def test_a_model_that_fails_costs_nothing_and_says_that_trying_again_can_help(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(fails(400, "No."), forever=True)
    with nothing_breaks(), by_key(vendor_server) as alice:
        error = alice.refused("Hello?", status=503)
        assert error["code"] == "model_unavailable"
        assert error["retryable"]
        assert error["receipt"]["credits"] == 0
        run = run_row(error["run_id"])
        assert (run.state, charged(run)) == ("failed", 0)
        assert ended_once(run)["code"] == "model_unavailable"


def test_what_was_said_before_the_model_failed_is_kept_but_is_no_memory(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Some words that came through.", error_after=3))
    with nothing_breaks(), by_key(vendor_server) as alice:
        error = alice.refused("Tell me.", status=503)
        run = run_row(error["run_id"])
        partial = alice.run(error["run_id"])["text"]
        assert partial
        assert "Some words that came through.".startswith(partial)
        alice.answer("Again.", conversation_id=str(run.conversation_id))
    assert partial.strip() not in str(anthropic_fake.requests()[-1]["body"]["messages"])


def test_a_refusal_of_the_vendor_is_a_safety_block_that_costs_nothing(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(Turn((), stop_reason="refusal", category="cyber"))
    with nothing_breaks(), by_key(vendor_server) as alice:
        error = alice.refused("Hm.", status=422)
        assert error["code"] == "safety_blocked"
        assert error["reason"] == "cyber"
        run = run_row(error["run_id"])
        assert (run.state, charged(run)) == ("blocked", 0)
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


def test_too_few_credits_are_refused_before_the_run_at_every_door(vendor_server: str) -> None:
    with nothing_breaks(), by_key(vendor_server, with_packs(4)) as poor:
        error = poor.refused("Hello?", status=402)
        assert error["code"] == "insufficient_credits"
        assert (error["balance"], error["required"]) == (4, 5)
        assert error["limit"]["name"] == "daily"
        assert error["resets_at"] == error["limit"]["resets_at"]
        assert error["upgrade_url"]
        streamed = poor.post("/api/chat", {"message": "Hello?"}, headers={"Accept": "text/event-stream"})
        assert (streamed.status_code, streamed.json()["error"]["code"]) == (402, "insufficient_credits")
        with poor.socket() as socket:
            run_id = socket.ask("Hello?")
            frame = socket.receive()
        assert (frame["seq"], frame["type"], frame["run_id"]) == (0, "error", run_id)
        assert frame["data"]["code"] == "insufficient_credits"
        assert not Run.objects.filter(person=poor.person).exists()
        assert poor.balance() == {"daily": 0, "pack": 4, "held": 0}


@pytest.mark.parametrize("credits", [5, 6])
def test_a_tool_that_cannot_be_paid_is_not_run_and_the_model_answers_with_what_it_has(
    vendor_server: str, anthropic_fake: AnthropicFake, credits: int
) -> None:
    anthropic_fake.script(ADD, says("About four hundred."))
    with nothing_breaks(), by_key(vendor_server, with_packs(credits)) as poor:
        answer = poor.answer("Add.")
        assert answer["response"] == "About four hundred."
        assert charged(run_row(answer["run_id"])) == 5
        line = answer["receipt"]["lines"][1]
        assert (line["item"], line["credits"], line["unit_price"]) == ("blocked", 0, 2)
        assert "credits" in line["note"]
        assert poor.balance() == {"daily": 0, "pack": credits - 5, "held": 0}
    told = anthropic_fake.requests()[1]["body"]
    assert "credits are used up" in str(told["messages"][-1])
    assert told["tool_choice"] == {"type": "none"}


@pytest.mark.thorough
def test_when_credits_end_in_mid_run_and_nothing_can_be_said_it_costs_nothing(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(ADD, SILENCE, forever=True)
    with nothing_breaks(), by_key(vendor_server, with_packs(6)) as poor:
        error = poor.refused("Add.", status=402)
        assert error["code"] == "insufficient_credits"
        assert error["required"] == 2
        assert error["limit"]["name"] == "daily"
        run = run_row(error["run_id"])
        assert (run.state, charged(run)) == ("failed", 0)
        assert poor.balance() == {"daily": 0, "pack": 6, "held": 0}


def test_a_tool_above_the_ceiling_of_a_question_is_not_run_and_the_receipt_says_so(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(ADD, says("About four hundred."))
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames = alice.events("Add.", max_credits=5)
        assert frames[0].data["quote"] == {"at_least": 5, "at_most": 5}
        line = frames[-1].data["receipt"]["lines"][1]
        assert (line["item"], line["credits"]) == ("ceiling", 0)
        assert "ceiling" in line["note"]
        assert of_type(frames, "tool_call_result")[0].data["ok"] is False
        assert alice.balance() == {"daily": 45, "pack": 0, "held": 0}


def test_a_server_that_is_full_takes_no_new_question_but_still_answers_for_an_old_one(
    database: object, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says(LONG, each_ms=20), key="at length")
    full = override_settings(MAX_RUNS=1, **vendor_settings(anthropic_fake.url))
    run_id = "00000000-0000-4000-8000-00000000000c"
    with nothing_breaks(), served(within=full) as url, by_key(url) as alice, by_key(url) as charlie:
        with talking(alice, run_id=run_id) as (_, frames):
            response = charlie.ask("Hello?")
            assert (response.status_code, response.json()["error"]["code"]) == (503, "capacity")
            assert int(response.headers["Retry-After"]) > 0
            assert not Run.objects.filter(person=charlie.person).exists()
            with alice.asking("Tell me at length.", run_id=run_id) as again:
                assert next(again).type == "run_started"
            alice.stop(run_id)
            list(frames)
        assert charlie.answer("Hello?")["credits_used"] == 5


def test_a_run_past_its_deadline_ends_keeps_its_words_and_costs_nothing(
    database: object, anthropic_fake: AnthropicFake
) -> None:
    async def impatient() -> Runtime:
        return await Runtime.start(profiles={**PROFILES, "quick": replace(QUICK, deadline_seconds=1)})

    anthropic_fake.script(says(LONG, each_ms=100))
    served_so = served(start=impatient, within=override_settings(**vendor_settings(anthropic_fake.url)))
    with nothing_breaks(), served_so as url, by_key(url) as alice:
        frames = alice.events("Tell me at length.", mode="quick")
        assert (frames[-1].type, frames[-1].data["code"]) == ("error", "deadline_exceeded")
        run = run_row(frames[-1].data["receipt"]["run_id"])
        assert (run.state, charged(run)) == ("failed", 0)
        kept = alice.run(str(run.run_id))["text"]
        assert kept
        assert LONG.startswith(kept)
        error = alice.refused("Tell me at length.", status=504, mode="quick", run_id=str(run.run_id))
        assert error["code"] == "deadline_exceeded"
