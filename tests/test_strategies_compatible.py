"""Where the vendors behind chat completions differ: what each is told beside the protocol, and what they make of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.messages import AssistantMessage, UserMessage
from chat.strategies.base import ModelStrategy
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, calls, says
from tests.fakes.listener import Heard, answered, listen
from tests.harness.parties import Party, only
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADD = Call("calculator", {"expression": "1 + 1"})
QWEN = ("qwen_thinking", "qwen_instruct")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(each_party: Party) -> AsyncIterator[ModelStrategy]:
    async with each_party.speaking() as strategy:
        yield strategy


def last_body(party: Party) -> dict[str, Any]:
    body: dict[str, Any] = party.fake.requests()[-1]["body"]
    return body


# Reasoning


@only("deepseek")
async def test_deepseek_thinks_where_its_card_says_so_and_not_when_a_tool_is_forced(
    model: ModelStrategy, party: Party
) -> None:
    at_once = replace(party.card, thinking="none")
    said = []
    for request in (
        party.asking("Hello"),
        party.asking("Hello", card=at_once),
        party.asking("Hello", must_call="calculator"),
    ):
        await listen(model, request)
        said.append(last_body(party)["thinking"]["type"])
    assert said == ["enabled", "disabled", "disabled"]


@only("deepseek")
async def test_deepseek_gets_the_reasoning_of_a_tool_turn_back_word_for_word(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(Turn((Thinking("Let me add. ✓"), ADD)), says("Two."), says("Never said."))
    first = await listen(model, party.asking("Add."))
    await listen(model, party.asking("Add.", first.reply, answered(first)))
    body = last_body(party)
    assert (body["messages"][2]["reasoning_content"], body["thinking"]["type"]) == ("Let me add. ✓", "enabled")
    forged = replace(first.reply, blocks=({**first.reply.blocks[0], "reasoning_content": "Something else."},))
    refused = await listen(model, party.asking("Add.", forged, answered(first)))
    assert refused.fault is not None
    assert "must be passed back" in refused.fault.detail


@only("deepseek")
async def test_a_tool_turn_without_reasoning_keeps_deepseek_from_thinking_after_it(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(calls(ADD), says("Two."))
    first = await listen(model, party.asking("Add."))
    second = await listen(model, party.asking("Add.", first.reply, answered(first)))
    assert second.text == "Two."
    assert last_body(party)["thinking"]["type"] == "disabled"


@only(*QWEN)
async def test_qwen_is_always_told_whether_to_think(model: ModelStrategy, party: Party) -> None:
    for thinking in ("none", "enabled"):
        await listen(model, party.asking("Hello", card=replace(party.card, thinking=thinking)))
        assert last_body(party)["enable_thinking"] is (party.vendor.strategy == "qwen_thinking")


@only("openai")
async def test_openai_reasons_only_where_no_tools_are_beside(model: ModelStrategy, party: Party) -> None:
    await listen(model, party.asking("Hello"))
    assert last_body(party)["reasoning_effort"] == "none"
    await listen(model, party.asking("Hello", with_tools=False))
    assert last_body(party)["reasoning_effort"] == "low"
    older = replace(party.card, model="gpt-4.1", thinking="none")
    assert (await listen(model, party.asking("Hello", card=older))).text
    assert "reasoning_effort" not in last_body(party)


@only("ollama")
async def test_ollama_names_its_reasoning_differently_and_gets_it_back_so(model: ModelStrategy, party: Party) -> None:
    party.fake.script(Turn((Thinking("Let me add."), ADD)), says("Two."))
    first = await listen(model, party.asking("Add."))
    assert first.reasoning == "Let me add."
    await listen(model, party.asking("Add.", first.reply, answered(first)))
    assert last_body(party)["messages"][2]["reasoning"] == "Let me add."


@only("ollama")
async def test_ollama_is_shown_no_tools_it_must_not_call(model: ModelStrategy, party: Party) -> None:
    await listen(model, party.asking("What is 2 + 2?", may_call=False))
    assert not {"tools", "tool_choice"} & set(last_body(party))


@only("gemini")
async def test_gemini_gets_the_signature_of_its_thoughts_back(model: ModelStrategy, party: Party) -> None:
    party.fake.script(calls(ADD, ADD), says("Two."))
    first = await listen(model, party.asking("Add."))
    await listen(model, party.asking("Add.", first.reply, answered(first)))
    told = last_body(party)["messages"][2]["tool_calls"]
    assert [bool(call.get("extra_content")) for call in told] == [True, False]
    bare = replace(first.reply, vendor="", blocks=())
    refused = await listen(model, party.asking("Add.", bare, answered(first)))
    assert refused.fault is not None
    assert "thought_signature" in refused.fault.detail


@only("openai", "deepseek")
async def test_the_most_tokens_of_an_answer_have_the_vendors_name(model: ModelStrategy, party: Party) -> None:
    await listen(model, party.asking("Hello", max_tokens=7))
    named = "max_completion_tokens" if party.vendor.strategy == "openai" else "max_tokens"
    assert last_body(party)[named] == 7


# Faults


@only(*QWEN)
@pytest.mark.parametrize("how", [{"status": 400}, {"error_after": 1}], ids=["at once", "in mid-stream"])
async def test_what_qwen_declines_to_answer_is_a_refusal(
    model: ModelStrategy, party: Party, how: dict[str, int]
) -> None:
    turn = Turn((Text("one two three"),), error_type="data_inspection_failed", message="Inappropriate content.", **how)
    party.fake.script(turn)
    heard = await listen(model, party.asking("Hm."))
    assert heard.refusal is not None
    assert heard.refusal.category == "data_inspection_failed"


@only("openai")
async def test_words_of_refusal_are_a_refusal(model: ModelStrategy, party: Party) -> None:
    party.fake.script(raw({"refusal": "I cannot"}, {"refusal": " do that."}, finish="stop"))
    heard = await listen(model, party.asking("Hm."))
    assert heard.refusal is not None
    assert heard.text == ""


@only("openai")
async def test_a_quota_that_is_used_up_does_not_pass_by_waiting(model: ModelStrategy, party: Party) -> None:
    party.fake.script(Turn(status=429, error_type="insufficient_quota", message="You exceeded your current quota."))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.REJECTED


@only("deepseek")
async def test_an_answer_that_ends_for_want_of_room_at_the_vendor_is_a_fault(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(says("And then", stop_reason="insufficient_system_resource"))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.OVERLOADED


@only("openai")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "Throttling.RateQuota", "message": "slow"}, FaultKind.RATE_LIMITED),
        ({"code": 503, "message": "Loading model", "type": "unavailable_error"}, FaultKind.OVERLOADED),
        ({"code": 429, "message": "slow"}, FaultKind.RATE_LIMITED),
        ({"code": "invalid_api_key", "message": "no"}, FaultKind.REJECTED),
        ("something broke", FaultKind.SERVER),
    ],
)
async def test_an_error_in_mid_stream_has_many_forms(
    model: ModelStrategy, party: Party, error: Any, kind: FaultKind
) -> None:
    party.fake.script(says("Never.", opening=orjson.dumps({"error": error}).decode()))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is kind


@only("gemini")
async def test_an_error_in_a_list_is_read_too(model: ModelStrategy, party: Party) -> None:
    party.fake.script(
        says("Never.", opening='[{"error": {"code": 429, "message": "Slow.", "status": "RESOURCE_EXHAUSTED"}}]')
    )
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert (heard.fault.kind, heard.fault.detail) == (FaultKind.RATE_LIMITED, "Slow.")


# Calls as servers write them


def raw(*deltas: dict[str, Any], finish: str = "tool_calls", **last: Any) -> Turn:
    """A stream of just these deltas."""
    chunks: list[dict[str, Any]] = [{"id": "c1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **last}
    written = [orjson.dumps(chunk).decode() for chunk in (*chunks, end)]
    return says("Never heard.", opening="\n\ndata: ".join([*written, "[DONE]"]))


def part(arguments: Any, *, name: str = "", **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{**more, "function": function}]}


ONE, TWO = '{"expression": "1"}', '{"expression": "2"}'
FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    "whole calls without an index": (
        part(ONE, name="calculator", id="a"),
        part(TWO, name="calculator", id="b"),
    ),
    "whole calls without index or id": (part(ONE, name="calculator"), part(TWO, name="calculator")),
    "several in one delta": (
        {
            "tool_calls": [
                *part(ONE, name="calculator", id="a")["tool_calls"],
                *part(TWO, name="calculator")["tool_calls"],
            ]
        },
    ),
    "all of them at index 0": (
        part(ONE, name="calculator", id="a", index=0),
        part(TWO, name="calculator", id="b", index=0),
    ),
    "one id for both": (
        part(ONE, name="calculator", id="a", index=0),
        part(TWO, name="calculator", id="a", index=1),
    ),
    "an id that is repeated": (
        part(ONE[:5], name="calculator", id="a"),
        part(ONE[5:], id="a"),
        part(TWO[:5], name="calculator", id="b"),
        part(TWO[5:], id="b"),
    ),
    "an id that is empty later": (
        part("", name="calculator", id="a", index=0),
        part("", name="calculator", id="b", index=1),
        part(TWO[:5], id="", index=1),
        part(ONE, id="", index=0),
        part(TWO[5:], id="", index=1),
    ),
    "pieces without an index": (
        part(ONE[:5], name="calculator", id="a"),
        part(ONE[5:]),
        part(TWO, name="calculator", id="b"),
    ),
    "arguments that are an object": (
        part({"expression": "1"}, name="calculator", id="a", index=0),
        part({"expression": "2"}, name="calculator", id="b", index=1),
    ),
    "nothing for arguments first": (
        part(None, name="calculator", id="a", index=0),
        part(ONE, index=0),
        part(TWO, name="calculator", id="b", index=1),
    ),
}


@only("openai")
@pytest.mark.parametrize("form", FORMS)
async def test_calls_are_put_together_however_a_server_writes_them(
    model: ModelStrategy, party: Party, form: str
) -> None:
    party.fake.script(raw(*FORMS[form]))
    first = await listen(model, party.asking("Go."))
    assert [call.arguments for call in first.reply.tool_calls] == [{"expression": "1"}, {"expression": "2"}]
    assert len({call.id for call in first.reply.tool_calls}) == 2
    assert all(call.id for call in first.reply.tool_calls)
    assert first.announced == ["calculator", "calculator"]
    second = await listen(model, party.asking("Go.", first.reply, answered(first)))
    assert second.text


@only("gemini")
async def test_a_signature_that_comes_alone_belongs_to_the_call_before_it(model: ModelStrategy, party: Party) -> None:
    alone = {"tool_calls": [{"extra_content": {"google": {"thought_signature": "signed"}}}]}
    party.fake.script(raw(part(ONE, name="calculator", id="a"), alone, finish="stop"))
    reply = (await listen(model, party.asking("Go."))).reply
    assert len(reply.tool_calls) == 1
    assert reply.blocks[0]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "signed"}}


@only("openai")
async def test_tokens_are_estimated_where_the_vendor_counts_none(model: ModelStrategy, party: Party) -> None:
    party.fake.script(raw({"content": "word " * 40}, finish="stop"))
    usage = (await listen(model, party.asking("A question. " * 100))).turn.usage
    assert 300 < usage.input < 500
    assert usage.output == 50


@only("openai")
@pytest.mark.parametrize("delta", [{"content": 3}, {"tool_calls": [{"index": 0}]}, {"tool_calls": 7}, "words"])
async def test_a_delta_that_makes_no_sense_is_malformed(model: ModelStrategy, party: Party, delta: Any) -> None:
    party.fake.script(raw(delta))
    heard = await listen(model, party.asking("Go."))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.MALFORMED


# The fakes keep their vendors' rules


async def refused(party: Party, **changes: Any) -> Heard:
    async with party.speaking() as model:
        return await listen(model, party.asking(UserMessage("Hello"), AssistantMessage("Hi"), "And?", **changes))


@only("deepseek", *QWEN, "openai", "ollama", "gemini")
async def test_a_model_that_is_not_served_is_refused_in_the_vendors_words(party: Party) -> None:
    heard = await refused(party, card=replace(party.card, model="deepseek-chat"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.REJECTED
    assert any(words in heard.fault.detail for words in ("Not Exist", "does not exist", "not found"))
