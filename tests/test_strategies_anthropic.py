"""What is Anthropic's alone: signed reasoning, manual thinking and marks for its cache. The rest is in the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.messages import Message, UserMessage
from chat.strategies.anthropic import Anthropic
from chat.strategies.base import Card
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


async def test_a_forced_tool_excludes_thinking(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    request = replace(asking("Anything.", card=ADAPTIVE), must_call="calculator")
    heard = await listen(claude, request)
    assert [call.name for call in heard.reply.tool_calls] == ["calculator"]
    sent = anthropic_fake.requests()[0]["body"]
    assert sent["tool_choice"] == {"type": "tool", "name": "calculator"}
    assert sent["thinking"] == {"type": "disabled"}


async def test_manual_thinking_does_not_begin_in_the_middle_of_a_tool_loop(claude: Anthropic) -> None:
    forced = replace(asking("Add.", card=MANUAL), must_call="calculator")
    first = await listen(claude, forced)
    second = await listen(claude, asking("Add.", first.reply, answered(first), card=MANUAL))
    assert second.reply.text


@pytest.mark.parametrize("opening", ['{"no": "type"}', '{"type": "content_block_stop", "index": 9}'])
async def test_an_event_that_makes_no_sense_is_malformed(
    claude: Anthropic, anthropic_fake: AnthropicFake, opening: str
) -> None:
    anthropic_fake.script(says("Hello", opening=opening))
    heard = await listen(claude, asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.MALFORMED


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
