"""When a model cannot answer the next one is asked, in words, within the same vendor, and never after a word."""

from __future__ import annotations

import uuid
from typing import Any

from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, calls, fails, says
from tests.harness.doors import by_key, by_session
from tests.harness.frames import Frame, of_type, run_row
from tests.harness.soundness import charged, ended_once, nothing_breaks

FIRST, SECOND, THIRD = "claude-haiku-5-5", "claude-haiku-4-5-20251001", "claude-sonnet-5-5"
GONE = fails(404, "model: not found")
ADD = Call("calculator", {"expression": "17.5 % of 2,480"})


def models_asked(fake: AnthropicFake) -> list[str]:
    return [seen["body"]["model"] for seen in fake.requests()]


def told(frames: list[Frame]) -> list[str]:
    return [frame.data["message"] for frame in of_type(frames, "status_update") if frame.data["phase"] == "retrying"]


def test_a_model_that_cannot_answer_is_stood_in_for_and_the_receipt_names_the_one_that_did(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(GONE, says("Here I am."))
    with nothing_breaks(), by_key(vendor_server) as alice:
        frames = alice.events("Hello?")
        assert frames[-1].data["text"] == "Here I am."
        assert told(frames) == ["The model's vendor did not take the question. Asking Claude Haiku 4.5 instead."]
        run = run_row(frames[-1].data["receipt"]["run_id"])
        assert (run.model, run.receipt["model"], charged(run)) == (SECOND, SECOND, 5)
    assert models_asked(anthropic_fake) == [FIRST, SECOND]
    usage = run.receipt["tokens"]
    fresh = usage["input"] - usage["cached"]
    assert run.receipt["cost_usd"] >= round((fresh * 1 + usage["output"] * 5) / 1_000_000, 6) > 0


def test_the_next_model_is_asked_once_asking_again_has_not_helped(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(fails(529), fails(529), fails(529), says("Here I am."))
    with by_key(vendor_server) as alice:
        frames = alice.events("Hello?")
    assert frames[-1].data["text"] == "Here I am."
    assert told(frames)[-1] == "The model is overloaded. Asking Claude Haiku 4.5 instead."
    assert models_asked(anthropic_fake) == [FIRST] * 3 + [SECOND]


def test_no_other_model_is_asked_once_a_word_was_seen(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("Some words that came through.", error_after=3), says("Too late."))
    with nothing_breaks(), by_key(vendor_server) as alice:
        error = alice.refused("Hello?", status=503)
    assert (error["code"], error["models_tried"]) == ("model_unavailable", 1)
    assert models_asked(anthropic_fake) == [FIRST]


def test_a_run_stays_with_the_model_that_answered_which_is_not_shown_the_reasoning_of_another(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(
        Turn((Thinking("Mine alone."), Text("Let me see."), ADD)), GONE, calls(ADD), says("It is 434.")
    )
    with nothing_breaks(), by_key(vendor_server) as alice:
        answer = alice.answer("How much?")
    assert answer["response"] == "It is 434."
    assert models_asked(anthropic_fake) == [FIRST, FIRST, SECOND, SECOND]
    assert [("Mine alone." in str(seen["body"])) for seen in anthropic_fake.requests()] == [False, True, False, False]
    last = anthropic_fake.requests()[-1]["body"]["messages"]
    shown = [kinds(message) for message in last[1:]]
    assert shown == [["text", "tool_use"], ["tool_result"], ["tool_use"], ["tool_result"]]
    run = run_row(answer["run_id"])
    assert (run.model, charged(run)) == (SECOND, 9)


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_when_every_model_fails_the_run_says_how_many_were_tried_and_costs_nothing(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    """And the strategy that needs no vendor does not answer in their place."""
    anthropic_fake.script(GONE, forever=True)
    with nothing_breaks(), by_key(vendor_server) as alice, by_session(vendor_server, alice.person) as browser:
        error = alice.refused("What is 2 + 2?", status=503)
        run = run_row(error["run_id"])
        page = browser.get(f"/chat/{run.conversation_id}/").text
        assert (error["code"], error["models_tried"], error["retryable"]) == ("model_unavailable", 3, True)
        assert error["message"] == "The model did not answer. 3 models were tried. Nothing was charged. Try again."
        assert "3 models were tried. Nothing was charged." in page
        assert (charged(run), run.model) == (0, THIRD)
        assert ended_once(run)["details"]["models_tried"] == 3
    assert models_asked(anthropic_fake) == [FIRST, SECOND, THIRD]


def test_what_the_vendor_declines_for_safety_is_not_asked_of_another_model(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(Turn((), stop_reason="refusal", category="cyber"), says("Too late."))
    with by_key(vendor_server) as alice:
        alice.refused("Hm.", status=422)
    assert models_asked(anthropic_fake) == [FIRST]


def test_a_run_can_be_stopped_while_the_next_model_is_asked(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(GONE, says("Never.", stall="headers"))
    run_id = str(uuid.uuid4())
    with nothing_breaks(), by_key(vendor_server) as alice, alice.asking("Hello?", run_id=run_id) as frames:
        end = next(frames)
        for frame in frames:
            end = frame
            if frame.data.get("phase") == "retrying":
                alice.stop(run_id)
        assert (end.type, end.data["code"]) == ("error", "stopped")
