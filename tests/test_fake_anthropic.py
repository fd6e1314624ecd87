"""The fake Messages server keeps the vendor's rules, so that code proven against it is proven."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest

from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Thinking, Turn, says

TOOL = {"name": "calculator", "description": "Calculates.", "input_schema": {"type": "object", "properties": {}}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "434"}
MARKED = {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}
HELLO = {"role": "user", "content": "Hello"}


def body(**changes: Any) -> dict[str, Any]:
    whole = {"model": "claude-haiku-5-5", "max_tokens": 100, "messages": [HELLO], **changes}
    return {name: value for name, value in whole.items() if value is not None}


def talk(*contents: Any) -> list[dict[str, Any]]:
    """Messages with alternating roles, the person first."""
    return [{"role": ("user", "assistant")[index % 2], "content": content} for index, content in enumerate(contents)]


def send(fake: AnthropicFake, sent: dict[str, Any], **headers: str) -> httpx2.Response:
    told = {"authorization": "Bearer key", "anthropic-version": "2026-10-21", **headers}
    return httpx2.post(f"{fake.url}/v1/messages", json=sent, headers=told, trust_env=False)


BROKEN: dict[str, dict[str, Any]] = {
    "no model": body(model=None),
    "no max_tokens": body(max_tokens=None),
    "max_tokens of 0": body(max_tokens=0),
    "temperature": body(temperature=1.0),
    "top_p": body(top_p=1.0),
    "top_k": body(top_k=1),
    "an unknown field": body(colour="red"),
    "no messages": body(messages=[]),
    "assistant first": body(messages=[{"role": "assistant", "content": "Hello"}]),
    "two of one role": body(messages=[HELLO, HELLO, HELLO]),
    "prefill": body(messages=talk("Hello", "I")),
    "no words": body(messages=talk(" ")),
    "a block without words": body(messages=talk([{"type": "text", "text": ""}])),
    "an unknown block": body(messages=talk([{"type": "sound"}])),
    "a call without a result": body(tools=[TOOL], messages=talk("Hello", [USE], "And?")),
    "a result behind words": body(tools=[TOOL], messages=talk("Hello", [USE], [{"type": "text", "text": "x"}, RESULT])),
    "a result without a call": body(tools=[TOOL], messages=talk("Hello", "Hi", [RESULT])),
    "a call that is no object": body(tools=[TOOL], messages=talk("Hello", [{**USE, "input": "x"}], [RESULT])),
    "calls without tools": body(messages=talk("Hello", [USE], [RESULT])),
    "a tool twice": body(tools=[TOOL, TOOL]),
    "a schema that is none": body(tools=[{**TOOL, "input_schema": {"type": "object", "properties": 3}}]),
    "a schema of no object": body(tools=[{**TOOL, "input_schema": {"type": "string"}}]),
    "a name with a dot": body(tools=[{**TOOL, "name": "a.b"}]),
    "a choice without tools": body(tool_choice={"type": "auto"}),
    "a choice of no tool": body(tools=[TOOL], tool_choice={"type": "tool", "name": "other"}),
    "force and thinking": body(tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
    "a small budget": body(thinking={"type": "enabled", "budget_tokens": 10}),
    "a budget over max_tokens": body(thinking={"type": "enabled", "budget_tokens": 2000}),
    "five marks": body(messages=talk([MARKED] * 5)),
    "an invented signature": body(
        messages=talk("Hello", [{"type": "thinking", "thinking": "x", "signature": "x"}, MARKED], "And?")
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_a_400_in_the_vendors_form(anthropic_fake: AnthropicFake, name: str) -> None:
    answer = send(anthropic_fake, BROKEN[name])
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.headers["request-id"] == answer.json()["request_id"]


@pytest.mark.parametrize("headers", [{"authorization": "Bearer key"}, {"authorization": "", "x-api-key": "key"}])
def test_a_key_is_taken_from_either_header(anthropic_fake: AnthropicFake, headers: dict[str, str]) -> None:
    assert send(anthropic_fake, body(), **headers).status_code == 200


@pytest.mark.parametrize("key", ["", "Bearer invalid-key"])
def test_no_key_or_a_wrong_one_is_a_401(anthropic_fake: AnthropicFake, key: str) -> None:
    assert send(anthropic_fake, body(), authorization=key).json()["error"]["type"] == "authentication_error"


def test_reasoning_left_out_of_a_tool_loop_is_refused(anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(Turn((Thinking("Let me see."), Call("calculator", {}))))
    thinking = {"type": "adaptive"}
    said = send(anthropic_fake, body(tools=[TOOL], thinking=thinking)).json()["content"]
    result = {**RESULT, "tool_use_id": said[1]["id"]}
    kept = body(tools=[TOOL], thinking=thinking, messages=talk("Hello", said, [result]))
    left_out = body(tools=[TOOL], thinking=thinking, messages=talk("Hello", said[1:], [result]))
    assert send(anthropic_fake, kept).status_code == 200
    assert send(anthropic_fake, left_out).status_code == 400


def test_a_prefix_seen_before_is_read_from_the_cache(anthropic_fake: AnthropicFake) -> None:
    first = send(anthropic_fake, body(messages=talk([MARKED]))).json()["usage"]
    again = send(anthropic_fake, body(messages=talk([MARKED], "Hi", "More"))).json()["usage"]
    other = send(anthropic_fake, body(messages=talk([{**MARKED, "text": "Other"}]))).json()["usage"]
    assert (first["cache_read_input_tokens"], first["cache_creation_input_tokens"] > 0) == (0, True)
    assert again["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert other["cache_read_input_tokens"] == 0


def test_a_script_answers_only_who_carries_its_key(anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("For you."), key="<mine>")
    anthropic_fake.script(says("For them."), key="<theirs>")
    texts = [
        send(anthropic_fake, body(messages=talk(f"Hello {key}"))).json()["content"][0]["text"]
        for key in ("<theirs>", "<mine>", "<mine>")
    ]
    assert texts[:2] == ["For them.", "For you."]
    assert "scripted model" in texts[2]
    assert len(anthropic_fake.requests("<mine>")) == 2


def test_a_plan_in_the_question_sets_turns_and_length(anthropic_fake: AnthropicFake) -> None:
    plan = "[[plan tools=1 parallel=2 tokens=7]] Go."
    asked = send(anthropic_fake, body(tools=[TOOL], messages=talk(plan))).json()["content"]
    assert [block["type"] for block in asked] == ["tool_use", "tool_use"]
    results = [{**RESULT, "tool_use_id": block["id"]} for block in asked]
    said = send(anthropic_fake, body(tools=[TOOL], messages=talk(plan, asked, results))).json()
    assert len(said["content"][0]["text"].split()) == said["usage"]["output_tokens"] == 7


async def test_the_sdk_counts_tokens_lists_models_and_reads_a_whole_message(anthropic_fake: AnthropicFake) -> None:
    async with anthropic.AsyncAnthropic(api_key="key", base_url=anthropic_fake.url, max_retries=0) as client:
        counted = await client.messages.count_tokens(
            model="claude-haiku-5-5", messages=[{"role": "user", "content": "Hello"}]
        )
        models = await client.models.list()
        async with client.messages.stream(
            model="claude-haiku-5-5", max_tokens=100, messages=[{"role": "user", "content": "[[plan tokens=3]]"}]
        ) as stream:
            message = await stream.get_final_message()
    assert counted.input_tokens > 0
    assert models.data[0].id == "claude-haiku-5-5"
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 3)
