"""What can go wrong between us and the vendor, over the real SDK: every end of a stream is a whole turn or a fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.strategies.anthropic import Anthropic
from chat.strategies.base import TextPiece, TurnComplete
from chat.strategies.patience import Patience
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, fails, says
from tests.fakes.listener import Heard, asking, listen

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-ant-a-key-nobody-may-read"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def claude(anthropic_server: AnthropicFake) -> AsyncIterator[Anthropic]:
    """One for all the tests of this file, as a process has one for all its runs."""
    strategy = Anthropic(api_key=KEY, base_url=anthropic_server.url, patience=Patience(pause_seconds=0))
    yield strategy
    await strategy.aclose()


async def test_a_refusal_names_its_category(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("I cannot", stop_reason="refusal", category="cyber"))
    heard = await listen(claude, asking("Do it."))
    assert heard.refusal is not None
    assert heard.refusal.category == "cyber"


@pytest.mark.parametrize("turn", [Turn(), says(" \n"), Turn((Thinking("Hm."),))])
async def test_an_answer_without_words_or_calls_is_a_fault(
    claude: Anthropic, anthropic_fake: AnthropicFake, turn: Turn
) -> None:
    anthropic_fake.script(turn)
    heard = await listen(claude, asking("Well?"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.EMPTY


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FaultKind.REJECTED),
        (401, FaultKind.REJECTED),
        (403, FaultKind.REJECTED),
        (404, FaultKind.REJECTED),
        (413, FaultKind.REJECTED),
        (429, FaultKind.RATE_LIMITED),
        (500, FaultKind.SERVER),
        (503, FaultKind.SERVER),
        (504, FaultKind.SERVER),
        (529, FaultKind.OVERLOADED),
    ],
)
async def test_a_status_says_how_the_call_failed_and_is_not_asked_again(
    claude: Anthropic, anthropic_fake: AnthropicFake, status: int, kind: FaultKind
) -> None:
    anthropic_fake.script(fails(status, f"The key {KEY} will not do."))
    heard = await listen(claude, asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is kind
    assert "will not do" in heard.fault.detail
    assert KEY not in heard.fault.detail
    assert len(anthropic_fake.requests()) == 1


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None), (None, None), ("inf", None)])
async def test_the_vendors_wish_to_wait_is_passed_on(
    claude: Anthropic, anthropic_fake: AnthropicFake, header: str | None, seconds: float | None
) -> None:
    anthropic_fake.script(fails(429, retry_after=header))
    heard = await listen(claude, asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.retry_after == seconds


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [
        ("overloaded_error", FaultKind.OVERLOADED),
        ("api_error", FaultKind.SERVER),
        ("rate_limit_error", FaultKind.RATE_LIMITED),
        ("invalid_request_error", FaultKind.REJECTED),
    ],
)
async def test_an_error_in_mid_stream_is_known_by_its_type(
    claude: Anthropic, anthropic_fake: AnthropicFake, error_type: str, kind: FaultKind
) -> None:
    anthropic_fake.script(says("one two three four", error_after=2, error_type=error_type))
    heard = await listen(claude, asking("Count."))
    assert heard.fault is not None
    assert heard.fault.kind is kind


@pytest.mark.parametrize(
    ("where", "patience"),
    [
        ("headers", Patience(first_token_seconds=0.1)),
        ("first_token", Patience(first_token_seconds=0.1)),
        ("middle", Patience(silence_seconds=0.1)),
    ],
)
async def test_silence_is_a_timeout_and_the_connection_is_closed(
    anthropic_fake: AnthropicFake, where: str, patience: Patience
) -> None:
    anthropic_fake.script(says("one two three four", stall=where))
    async with aclosing(Anthropic(api_key=KEY, base_url=anthropic_fake.url, patience=patience)) as hasty:
        heard = await listen(hasty, asking("Count."))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.TIMEOUT
    assert bool(heard.text) is (where == "middle")
    await seen_closed(anthropic_fake)


@pytest.mark.parametrize("opening", ["{broken", "[]", '{"no": "type"}', '{"type": "content_block_stop", "index": 9}'])
async def test_a_stream_that_cannot_be_read_is_malformed(
    claude: Anthropic, anthropic_fake: AnthropicFake, opening: str
) -> None:
    anthropic_fake.script(says("Hello", opening=opening))
    heard = await listen(claude, asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.MALFORMED


async def test_an_event_of_a_new_kind_is_passed_over(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("Hello", opening='{"type": "something_new"}'))
    assert (await listen(claude, asking("Hello"))).reply.text == "Hello"


async def test_a_connection_dropped_before_an_answer_is_a_fault_of_the_connection(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(Turn(is_dropped=True))
    heard = await listen(claude, asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.CONNECTION
    assert len(anthropic_fake.requests()) == 1


async def test_a_server_that_is_not_there_is_a_fault_of_the_connection() -> None:
    strategy = Anthropic(api_key=KEY, base_url="http://127.0.0.1:9")
    heard = await listen(strategy, asking("Hello"))
    await strategy.aclose()
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.CONNECTION


async def test_leaving_early_closes_the_connection_to_the_vendor(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("word " * 1000, each_ms=5))
    async with aclosing(claude.stream(asking("Tell me."))) as events:
        async for event in events:
            assert isinstance(event, TextPiece)
            break
    await seen_closed(anthropic_fake)


async def test_a_cancelled_task_closes_the_connection_to_the_vendor(
    claude: Anthropic, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("word " * 1000, first_ms=60_000))
    task = asyncio.create_task(listen(claude, asking("Tell me.")))
    while not anthropic_fake.requests():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await seen_closed(anthropic_fake)


async def test_turns_share_a_connection(claude: Anthropic, anthropic_fake: AnthropicFake) -> None:
    for _ in range(3):
        await listen(claude, asking("Hello"))
    assert len({seen["connection"] for seen in anthropic_fake.requests()}) == 1


WHOLE = Turn((Text("Größe"), Call("calculator", {"a": 1}, id="toolu_fixed")))


@pytest_asyncio.fixture(loop_scope="module")
async def whole(claude: Anthropic, anthropic_fake: AnthropicFake) -> TurnComplete:
    anthropic_fake.script(WHOLE)
    return (await listen(claude, asking("<whole>"))).turn


async def listen_to_variants(
    claude: Anthropic, anthropic_fake: AnthropicFake, variants: dict[str, Turn]
) -> dict[str, Heard]:
    """What is heard of each turn, fifty at a time."""
    anthropic_fake.script_many(variants)
    heard: dict[str, Heard] = {}
    limit = asyncio.Semaphore(50)

    async def one(key: str) -> None:
        async with limit:
            heard[key] = await listen(claude, asking(key))

    await asyncio.gather(*(one(key) for key in variants))
    return heard


@pytest.mark.parametrize(("end", "step"), [("cut_at", 1), ("ends_at", 5)])
async def test_a_body_that_ends_at_any_byte_is_the_whole_turn_or_a_fault(
    claude: Anthropic, anthropic_fake: AnthropicFake, whole: TurnComplete, end: str, step: int
) -> None:
    """`cut_at` drops the connection, `ends_at` closes the body as if that had been all."""
    size = anthropic_fake.requests()[0]["body_bytes"]
    variants = {f"<{end} {at}>": replace(WHOLE, **{end: at}) for at in [*range(0, size, step), size]}
    heard = await listen_to_variants(claude, anthropic_fake, variants)
    was_whole = []
    for key in variants:
        fault = heard[key].fault
        was_whole.append(fault is None)
        if fault is None:
            assert heard[key].reply == whole.reply
        else:
            assert fault.kind is FaultKind.CUT_SHORT, key
    assert was_whole == sorted(was_whole)
    assert not was_whole[0]
    assert was_whole[-1]


async def test_a_body_split_at_any_byte_gives_the_same_turn(
    claude: Anthropic, anthropic_fake: AnthropicFake, whole: TurnComplete
) -> None:
    size = anthropic_fake.requests()[0]["body_bytes"]
    variants = {f"<split {at}>": replace(WHOLE, pause_at=at) for at in range(1, size, 5)}
    variants["<every byte>"] = replace(WHOLE, split=1)
    heard = await listen_to_variants(claude, anthropic_fake, variants)
    assert {key: one.reply for key, one in heard.items()} == dict.fromkeys(variants, whole.reply)


async def seen_closed(fake: AnthropicFake) -> None:
    """Waits until the fake saw the client leave; it has five seconds."""
    for _ in range(500):
        if fake.requests()[-1]["closed_early"]:
            return
        await asyncio.sleep(0.01)
    pytest.fail("the connection was not closed")
