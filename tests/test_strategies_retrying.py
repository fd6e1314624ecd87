"""Asking again: how often, how long after, and never once somebody has seen a word. Calls are counted at the fake."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.messages import UserMessage
from chat.strategies.anthropic import Anthropic
from chat.strategies.base import ModelRequest
from chat.strategies.patience import Patience
from chat.strategies.retrying import Backoff, Retrying
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Thinking, Turn, calls, fails, says
from tests.fakes.listener import CALCULATOR, CARD, listen

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUEST = ModelRequest(CARD, "You are KlerAI.", (UserMessage("Hello"),), (CALCULATOR,))
AT_ONCE = Backoff(first_seconds=0, cap_seconds=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def claude(anthropic_server: AnthropicFake) -> AsyncIterator[Retrying]:
    async with aclosing(over(anthropic_server, Patience(pause_seconds=0))) as strategy:
        yield strategy


def over(fake: AnthropicFake, patience: Patience) -> Retrying:
    return Retrying(Anthropic(api_key="key", base_url=fake.url, patience=patience), backoff=AT_ONCE)


PASSING = {
    "429": fails(429, retry_after="3600"),
    "500": fails(500),
    "503": fails(503),
    "529": fails(529),
    "cut before the first word": says("Hello there", cut_at=400),
    "dropped": Turn(is_dropped=True),
    "unreadable": says("Hello", opening="{broken"),
    "empty": Turn(),
    "error before the first word": says("Hello there", error_after=0),
}


@pytest.mark.parametrize("name", PASSING)
async def test_a_fault_that_may_pass_is_asked_again_twice(
    claude: Retrying, anthropic_fake: AnthropicFake, name: str
) -> None:
    anthropic_fake.script(PASSING[name], PASSING[name], says("Here I am."))
    heard = await listen(claude, REQUEST)
    assert heard.text == "Here I am."
    assert [retry.attempt for retry in heard.retries] == [1, 2]
    assert all(retry.reason.endswith(".") for retry in heard.retries)
    assert len(anthropic_fake.requests()) == 3


@pytest.mark.parametrize("name", PASSING)
async def test_a_fault_that_stays_is_given_up_after_three_calls(
    claude: Retrying, anthropic_fake: AnthropicFake, name: str
) -> None:
    anthropic_fake.script(PASSING[name], forever=True)
    heard = await listen(claude, REQUEST)
    assert heard.fault is not None
    assert len(heard.retries) == 2
    assert len(anthropic_fake.requests()) == 3


@pytest.mark.parametrize("where", ["headers", "first_token"])
async def test_a_timeout_is_asked_again_once(anthropic_fake: AnthropicFake, where: str) -> None:
    anthropic_fake.script(says("Hello", stall=where), forever=True)
    async with aclosing(over(anthropic_fake, Patience(first_token_seconds=0.1))) as hasty:
        heard = await listen(hasty, REQUEST)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.TIMEOUT
    assert len(anthropic_fake.requests()) == 2


async def test_different_faults_together_are_asked_again_twice(anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(fails(529), says("Hello", stall="headers"), fails(500), says("Too late."))
    async with aclosing(over(anthropic_fake, Patience(first_token_seconds=1))) as strategy:
        heard = await listen(strategy, REQUEST)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.SERVER
    assert len(anthropic_fake.requests()) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
async def test_what_the_vendor_rejects_is_not_asked_again(
    claude: Retrying, anthropic_fake: AnthropicFake, status: int
) -> None:
    anthropic_fake.script(fails(status), says("Too late."))
    heard = await listen(claude, REQUEST)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.REJECTED
    assert len(anthropic_fake.requests()) == 1


async def test_a_refusal_is_not_asked_again(claude: Retrying, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(Turn(stop_reason="refusal", category="bio"), says("Too late."))
    heard = await listen(claude, REQUEST)
    assert heard.refusal is not None
    assert heard.refusal.category == "bio"
    assert len(anthropic_fake.requests()) == 1


AFTER_WORDS = {
    "cut": says("one two three four", cut_at=700, each_ms=1),
    "error": says("one two three four", error_after=2),
    "silence": says("one two three four", stall="middle"),
}


@pytest.mark.parametrize("name", AFTER_WORDS)
async def test_nothing_is_asked_again_once_a_word_was_seen(anthropic_fake: AnthropicFake, name: str) -> None:
    anthropic_fake.script(AFTER_WORDS[name], says("Too late."))
    async with aclosing(over(anthropic_fake, Patience(silence_seconds=0.2, pause_seconds=0))) as strategy:
        heard = await listen(strategy, REQUEST)
    assert heard.fault is not None
    assert heard.text.startswith("one")
    assert heard.retries == []
    assert len(anthropic_fake.requests()) == 1


async def test_reasoning_and_announced_tools_do_not_keep_it_from_asking_again(
    claude: Retrying, anthropic_fake: AnthropicFake
) -> None:
    wish = Call("calculator", {"expression": "1 + 1"})
    broken = Turn((Thinking("Let me see."), wish), error_after=5)
    anthropic_fake.script(broken, calls(wish))
    heard = await listen(claude, REQUEST)
    assert heard.reasoning == "Let me see."
    assert heard.announced == ["calculator", "calculator"]
    assert len(heard.reply.tool_calls) == 1


async def test_the_vendors_wish_is_obeyed_up_to_the_cap() -> None:
    assert Backoff().seconds(1, retry_after=3) == 3
    assert Backoff().seconds(1, retry_after=3600) == 8
    assert Backoff().seconds(1, retry_after=0) == 0


async def test_without_a_wish_the_wait_doubles_with_jitter_up_to_the_cap() -> None:
    for attempt, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0)):
        assert longest / 2 <= Backoff().seconds(attempt, retry_after=None) <= longest
