"""The Anthropic strategy over the real SDK, against a server that speaks the real wire protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import orjson
import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage
from chat.strategies.anthropic import Anthropic
from chat.strategies.base import ArgumentsPiece, Card
from chat.strategies.patience import Patience
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Redacted, Text, Thinking, Turn, calls, says
from tests.fakes.listener import CARD, answered, asking, listen

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-ant-a-key-nobody-may-read"
ADAPTIVE = replace(CARD, thinking="adaptive")
MANUAL = Card(name="Old Haiku", strategy="anthropic", model="claude-haiku-4-5-20251001", thinking="manual")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def claude(anthropic_server: AnthropicFake) -> AsyncIterator[Anthropic]:
    """One for all the tests of this file, as a process has one for all its runs."""
    strategy = Anthropic(api_key=KEY, base_url=anthropic_server.url, patience=Patience(pause_seconds=0))
    yield strategy
    await strategy.aclose()


async def test_words_arrive_in_pieces_and_the_turn_holds_all_of_them(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("Seventeen and a half per cent — 434. 🎉 ‏שלום", each_ms=2))
    heard = await listen(claude, asking("How much?"))
    assert len(heard.pieces) > 1
    assert heard.text == heard.reply.text == "Seventeen and a half per cent — 434. 🎉 ‏שלום"
    assert heard.reply.tool_calls == ()
    assert not heard.turn.is_cut


async def test_words_that_arrive_together_are_one_piece(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("one two three four five"))
    assert (await listen(claude, asking("Count."))).pieces == ["one two three four five"]


async def test_two_tools_are_called_in_one_turn_and_both_results_go_back_together(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(
        calls(Call("calculator", {"expression": "1 + 1"}), Call("calculator", {"expression": "2 + 2"})), says("Done.")
    )
    first = await listen(claude, asking("Two sums."))
    assert first.announced == ["calculator", "calculator"]
    assert [call.arguments for call in first.reply.tool_calls] == [{"expression": "1 + 1"}, {"expression": "2 + 2"}]
    second = await listen(claude, asking("Two sums.", first.reply, answered(first)))
    assert second.text == "Done."
    sent = anthropic_fake.requests()[1]["body"]["messages"]
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result", "tool_result"]


async def test_the_arguments_of_a_spoken_tool_are_given_out_as_they_are_written(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    spoken = {"answer": "It is 434 — “exactly”. 🎉"}
    anthropic_fake.script(calls(Call("calculator", {"expression": "1 + 1"}), Call("say", spoken), each_ms=2))
    heard = await listen(claude, replace(asking("Say it."), spoken_tool="say"))
    first, second = heard.reply.tool_calls
    assert orjson.loads(heard.arguments[second.id]) == spoken == second.arguments
    assert len([event for event in heard.events if isinstance(event, ArgumentsPiece)]) > 1
    assert first.id not in heard.arguments


async def test_a_call_without_arguments_has_none(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(Call("calculator", {})))
    assert (await listen(claude, asking("Go."))).reply.tool_calls[0].arguments == {}


async def test_the_unscripted_model_asks_for_the_calculator_and_answers_from_it(claude: Anthropic) -> None:
    question = "What is 17.5 % of 2,480 and 12 * 7?"
    first = await listen(claude, asking(question))
    assert [call.arguments for call in first.reply.tool_calls] == [
        {"expression": "17.5 % of 2,480"},
        {"expression": "12 * 7"},
    ]
    results = ToolResults(
        tuple(
            ToolResult(call.id, call.name, value)
            for call, value in zip(first.reply.tool_calls, ("434", "84"), strict=True)
        )
    )
    second = await listen(claude, asking(question, first.reply, results))
    assert second.text == "17.5 % of 2,480 is **434**. 12 * 7 is **84**."


@pytest.mark.parametrize("card", [ADAPTIVE, MANUAL])
async def test_reasoning_is_shown_kept_and_sent_back_byte_for_byte(
    claude: Anthropic, anthropic_fake: AnthropicFake, card: Card
) -> None:
    wish = Call("calculator", {"expression": "1 + 1"})
    anthropic_fake.script(
        Turn((Thinking("Let me add. Ünïcode too."), Redacted("unseen"), Text("I will add."), wish)), says("Two.")
    )
    first = await listen(claude, asking("Add.", card=card))
    assert first.reasoning == "Let me add. Ünïcode too."
    assert first.text == "I will add."
    assert [block["type"] for block in first.reply.blocks] == ["thinking", "redacted_thinking", "text", "tool_use"]
    second = await listen(claude, asking("Add.", first.reply, answered(first), card=card))
    assert second.text == "Two."
    sent = anthropic_fake.requests()[1]["body"]
    assert sent["messages"][1]["content"] == list(first.reply.blocks)
    assert sent["thinking"]["type"] == {"adaptive": "adaptive", "manual": "enabled"}[card.thinking]


async def test_changed_reasoning_is_refused_by_the_vendor(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(Turn((Thinking("Let me add."), Call("calculator", {}))))
    first = await listen(claude, asking("Add.", card=ADAPTIVE))
    forged = replace(first.reply, blocks=({**first.reply.blocks[0], "thinking": "Other."}, *first.reply.blocks[1:]))
    second = await listen(claude, asking("Add.", forged, answered(first), card=ADAPTIVE))
    assert second.fault is not None
    assert second.fault.kind is FaultKind.REJECTED


async def test_a_forced_tool_is_called(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    request = replace(asking("Anything.", card=ADAPTIVE), must_call="calculator")
    heard = await listen(claude, request)
    assert [call.name for call in heard.reply.tool_calls] == ["calculator"]
    sent = anthropic_fake.requests()[0]["body"]
    assert sent["tool_choice"] == {"type": "tool", "name": "calculator"}
    assert sent["thinking"] == {"type": "disabled"}


async def test_a_card_that_does_not_honour_a_forced_tool_is_not_asked_to(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    card = replace(ADAPTIVE, honours_forced_tool=False)
    await listen(claude, replace(asking("Anything.", card=card), must_call="calculator"))
    assert "tool_choice" not in anthropic_fake.requests()[0]["body"]


async def test_manual_thinking_does_not_begin_in_the_middle_of_a_tool_loop(claude: Anthropic) -> None:
    forced = replace(asking("Add.", card=MANUAL), must_call="calculator")
    first = await listen(claude, forced)
    second = await listen(claude, asking("Add.", first.reply, answered(first), card=MANUAL))
    assert second.reply.text


@pytest.mark.parametrize("keeps_tools", [True, False])
async def test_a_turn_that_may_not_call_ends_in_words(
    claude: Anthropic, anthropic_fake: AnthropicFake, keeps_tools: bool
) -> None:
    first = await listen(claude, asking("What is 2 + 2?"))
    last = asking("What is 2 + 2?", first.reply, answered(first), with_tools=keeps_tools)
    second = await listen(claude, replace(last, may_call=False))
    assert second.reply.tool_calls == ()
    assert second.text
    assert anthropic_fake.requests()[1]["body"]["tool_choice"] == {"type": "none"}


async def test_turns_of_another_vendor_are_told_in_words_and_calls(claude: Anthropic) -> None:
    told = AssistantMessage("Let me see.", (ToolCall("call_1", "calculator", {"expression": "1 + 1"}),), "openai")
    results = ToolResults((ToolResult("call_1", "calculator", "2", ok=False),))
    history = (UserMessage("Hello"), AssistantMessage(""), UserMessage("  "), told, results, UserMessage("And now?"))
    assert (await listen(claude, asking(*history))).text


async def test_calls_that_could_not_be_read_go_back_as_an_object(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(Call("calculator", '{"expression": "1 +')), says("I will write it again."))
    first = await listen(claude, asking("Add."))
    call = first.reply.tool_calls[0]
    assert (call.arguments, call.written) == (None, '{"expression": "1 +')
    second = await listen(claude, asking("Add.", first.reply, answered(first)))
    assert second.text == "I will write it again."


@pytest.mark.parametrize("written", ["[1, 2]", '"text"', "null", "nonsense", '{"a": "\\ud800"}'])
async def test_arguments_that_are_no_object_are_none(
    claude: Anthropic, anthropic_fake: AnthropicFake, written: str
) -> None:
    anthropic_fake.script(calls(Call("calculator", written)))
    call = (await listen(claude, asking("Go."))).reply.tool_calls[0]
    assert (call.arguments, call.written) == (None, written)


@pytest.mark.parametrize("written", ['{"expression": "1', ""])
async def test_a_call_cut_at_the_token_limit_has_no_arguments(
    claude: Anthropic, anthropic_fake: AnthropicFake, written: str
) -> None:
    anthropic_fake.script(calls(Call("calculator", written), stop_reason="max_tokens"))
    heard = await listen(claude, asking("Add."))
    assert heard.turn.is_cut
    assert heard.reply.tool_calls[0].arguments is None


async def test_an_answer_cut_at_the_token_limit_says_so(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("And then", stop_reason="max_tokens"))
    heard = await listen(claude, asking("Tell me."))
    assert heard.turn.is_cut
    assert heard.reply.text == "And then"


async def test_words_that_come_fast_are_gathered_while_reading_rests(anthropic_fake: AnthropicFake) -> None:
    strategy = Anthropic(api_key=KEY, base_url=anthropic_fake.url, patience=Patience(pause_seconds=0.05))
    anthropic_fake.script(says("word " * 100, each_ms=2))
    heard = await listen(strategy, asking("Tell me."))
    await strategy.aclose()
    assert 1 < len(heard.pieces) < 50
    assert heard.text == "word " * 100


async def test_reading_does_not_rest_while_a_call_is_written_nor_when_the_turn_is_whole(
    anthropic_fake: AnthropicFake,
) -> None:
    an_hour = Patience(pause_seconds=3600)
    strategy = Anthropic(api_key=KEY, base_url=anthropic_fake.url, patience=an_hour)
    anthropic_fake.script(calls(Call("calculator", {"expression": "1 + 1"}), each_ms=5), says("Two."))
    first = await listen(strategy, asking("Add."))
    second = await listen(strategy, asking("Add.", first.reply, answered(first)))
    await strategy.aclose()
    assert second.text == "Two."


async def test_the_prefix_only_grows_and_is_read_from_the_cache(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(Call("calculator", {"expression": "1 + 1"})), says("Two."), says("Again: two."))
    messages: list[Message] = [UserMessage("A long question. " * 50)]
    usages = []
    for _ in range(2):
        heard = await listen(claude, replace(asking(*messages), settled=len(messages)))
        usages.append(heard.turn.usage)
        messages.append(heard.reply)
        if heard.reply.tool_calls:
            messages.append(answered(heard))
    messages.append(UserMessage("And again?"))
    usages.append((await listen(claude, replace(asking(*messages), settled=len(messages) - 1))).turn.usage)

    bodies = [seen["body"] for seen in anthropic_fake.requests()]
    for body in bodies:
        assert str(body).count("cache_control") <= 4
        assert "cache_control" in body["tools"][-1]
        assert "cache_control" in body["system"][-1]
    assert unmarked(bodies[1]["messages"])[:1] == unmarked(bodies[0]["messages"])
    assert unmarked(bodies[2]["messages"])[:3] == unmarked(bodies[1]["messages"])
    assert usages[0].cached == 0
    assert usages[1].cached == usages[0].input
    assert usages[2].cached >= usages[1].input
    assert all(usage.input >= usage.cached + usage.cache_written for usage in usages)


def unmarked(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """The messages as the vendor's cache compares them: without the breakpoints."""
    return [
        {**message, "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]}
        for message in messages
        if isinstance(blocks := message["content"], list)
    ]
