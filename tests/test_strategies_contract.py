"""What every strategy promises, over the real SDK and against a server that speaks its vendor's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest
import pytest_asyncio

from chat.errors import FaultKind
from chat.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage
from chat.strategies.base import ArgumentsPiece, ModelStrategy, TextPiece, TurnComplete
from chat.strategies.patience import Patience
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn, calls, fails, says
from tests.fakes.listener import answered, listen
from tests.harness.parties import KEY, Party, listen_to_each, seen_closed
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party
from tests.harness.scenario import IS_FULL, IS_THOROUGH

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADD = Call("calculator", {"expression": "1 + 1"})
# Between the places at which a body is cut or split: all with KLERAI_FULL=1, some in CI.
STEP = 1 if IS_FULL else 7 if IS_THOROUGH else 37


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(each_party: Party) -> AsyncIterator[ModelStrategy]:
    """One for all the tests of this file, as a process has one for all its runs."""
    async with each_party.speaking() as strategy:
        yield strategy


# Words


async def test_words_arrive_in_pieces_and_the_turn_holds_all_of_them(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("Seventeen and a half per cent — 434. 🎉 ‏שלום", each_ms=20))
    heard = await listen(model, party.asking("How much?"))
    assert len(heard.pieces) > 1
    assert heard.text == heard.reply.text == "Seventeen and a half per cent — 434. 🎉 ‏שלום"
    assert heard.reply.tool_calls == ()
    assert not heard.turn.is_cut


async def test_words_that_arrive_together_are_one_piece(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("one two three four five"))
    assert (await listen(model, party.asking("Count."))).pieces == ["one two three four five"]


async def test_an_answer_cut_at_the_token_limit_says_so(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("And then", stop_reason="max_tokens"))
    heard = await listen(model, party.asking("Tell me."))
    assert heard.turn.is_cut
    assert heard.reply.text == "And then"


async def test_words_that_come_fast_are_gathered_while_reading_rests(party: Party) -> None:
    party.fake.script(says("word " * 100, each_ms=2))
    async with party.speaking(patience=Patience(pause_seconds=0.05)) as resting:
        heard = await listen(resting, party.asking("Tell me."))
    assert 1 < len(heard.pieces) < 50
    assert heard.text == "word " * 100


async def test_reading_does_not_rest_while_a_call_is_written_nor_when_the_turn_is_whole(party: Party) -> None:
    party.fake.script(calls(ADD, each_ms=5), says("Two."))
    async with party.speaking(patience=Patience(pause_seconds=3600)) as resting:
        first = await listen(resting, party.asking("Add."))
        second = await listen(resting, party.asking("Add.", first.reply, answered(first)))
    assert second.text == "Two."


async def test_tokens_are_counted_and_a_prefix_seen_before_is_read_from_the_cache(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(calls(ADD), says("Two."))
    question = UserMessage("A long question. " * 50)
    first = await listen(model, party.asking(question, settled=1))
    second = await listen(model, party.asking(question, first.reply, answered(first), settled=3))
    assert first.turn.usage.cached == 0
    assert second.turn.usage.input > second.turn.usage.cached > 0
    assert first.turn.usage.output > 0


# Tools


async def test_two_tools_are_called_in_one_turn_and_both_results_go_back(model: ModelStrategy, party: Party) -> None:
    party.fake.script(calls(ADD, Call("calculator", {"expression": "2 + 2"})), says("Done."))
    first = await listen(model, party.asking("Two sums."))
    assert first.announced == ["calculator", "calculator"]
    assert [call.arguments for call in first.reply.tool_calls] == [{"expression": "1 + 1"}, {"expression": "2 + 2"}]
    assert len({call.id for call in first.reply.tool_calls}) == 2
    second = await listen(model, party.asking("Two sums.", first.reply, answered(first)))
    assert second.text == "Done."


async def test_the_unscripted_model_asks_for_the_calculator_and_answers_from_it(
    model: ModelStrategy, party: Party
) -> None:
    question = "What is 17.5 % of 2,480 and 12 * 7?"
    first = await listen(model, party.asking(question))
    assert [call.arguments for call in first.reply.tool_calls] == [
        {"expression": "17.5 % of 2,480"},
        {"expression": "12 * 7"},
    ]
    values = zip(first.reply.tool_calls, ("434", "84"), strict=True)
    results = ToolResults(tuple(ToolResult(call.id, call.name, value) for call, value in values))
    second = await listen(model, party.asking(question, first.reply, results))
    assert second.text == "17.5 % of 2,480 is **434**. 12 * 7 is **84**."


async def test_a_tool_is_forced_where_the_card_says_that_this_is_honoured(model: ModelStrategy, party: Party) -> None:
    heard = await listen(model, party.asking("Anything.", must_call="calculator"))
    if party.card.honours_forced_tool:
        assert party.forced_tool() == "calculator"
        assert [call.name for call in heard.reply.tool_calls] == ["calculator"]
    else:
        assert party.forced_tool() is None
        assert heard.text


async def test_a_card_that_does_not_honour_a_forced_tool_is_not_asked_to(model: ModelStrategy, party: Party) -> None:
    card = replace(party.card, honours_forced_tool=False)
    await listen(model, party.asking("Anything.", card=card, must_call="calculator"))
    assert party.forced_tool() is None


async def test_a_forced_tool_that_is_ignored_is_simply_not_called(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("I would rather not."))
    heard = await listen(model, party.asking("Anything.", must_call="calculator"))
    assert heard.reply.tool_calls == ()
    assert heard.text == "I would rather not."


@pytest.mark.parametrize("keeps_tools", [True, False])
async def test_a_turn_that_may_not_call_ends_in_words(model: ModelStrategy, party: Party, keeps_tools: bool) -> None:
    first = await listen(model, party.asking("What is 2 + 2?"))
    last = party.asking("What is 2 + 2?", first.reply, answered(first), with_tools=keeps_tools, may_call=False)
    second = await listen(model, last)
    assert second.reply.tool_calls == ()
    assert second.text


async def test_a_model_that_may_not_call_does_not_although_it_would(model: ModelStrategy, party: Party) -> None:
    heard = await listen(model, party.asking("What is 2 + 2?", may_call=False))
    assert heard.reply.tool_calls == ()


async def test_the_arguments_of_a_spoken_tool_are_given_out_as_they_are_written(
    model: ModelStrategy, party: Party
) -> None:
    spoken = {"answer": "It is 434 — “exactly”. 🎉"}
    party.fake.script(calls(ADD, Call("say", spoken), each_ms=2))
    heard = await listen(model, party.asking("Say it.", spoken_tool="say"))
    first, second = heard.reply.tool_calls
    assert orjson.loads(heard.arguments[second.id]) == spoken == second.arguments
    pieces = [event for event in heard.events if isinstance(event, ArgumentsPiece)]
    comes_whole = party.vendor.strategy in ("ollama", "gemini")
    assert (len(pieces) == 1) is comes_whole
    assert first.id not in heard.arguments


async def test_a_call_without_arguments_has_none(model: ModelStrategy, party: Party) -> None:
    party.fake.script(calls(Call("calculator", {})))
    assert (await listen(model, party.asking("Go."))).reply.tool_calls[0].arguments == {}


async def test_calls_that_could_not_be_read_go_back_as_an_object(model: ModelStrategy, party: Party) -> None:
    party.fake.script(calls(Call("calculator", '{"expression": "1 +')), says("I will write it again."))
    first = await listen(model, party.asking("Add."))
    call = first.reply.tool_calls[0]
    assert (call.arguments, call.written) == (None, '{"expression": "1 +')
    second = await listen(model, party.asking("Add.", first.reply, answered(first)))
    assert second.text == "I will write it again."


@pytest.mark.parametrize("written", ["[1, 2]", '"text"', "null", "nonsense", '{"a": "\\ud800"}'])
async def test_arguments_that_are_no_object_are_none(model: ModelStrategy, party: Party, written: str) -> None:
    party.fake.script(calls(Call("calculator", written)))
    call = (await listen(model, party.asking("Go."))).reply.tool_calls[0]
    assert (call.arguments, call.written) == (None, written)


@pytest.mark.parametrize("written", ['{"expression": "1', ""])
async def test_a_call_cut_at_the_token_limit_has_no_arguments(model: ModelStrategy, party: Party, written: str) -> None:
    party.fake.script(calls(Call("calculator", written), stop_reason="max_tokens"))
    heard = await listen(model, party.asking("Add."))
    assert heard.turn.is_cut
    assert heard.reply.tool_calls[0].arguments is None


# What is sent back


async def test_reasoning_is_shown_and_goes_back_as_the_vendor_demands(model: ModelStrategy, party: Party) -> None:
    """The fakes of vendors that want it back refuse a tool turn that comes back without it."""
    party.fake.script(Turn((Thinking("Let me add. Ünïcode too."), Text("I will add."), ADD)), says("Two."))
    first = await listen(model, party.asking("Add."))
    assert first.reasoning == ("Let me add. Ünïcode too." if party.shows_reasoning else "")
    assert first.text == "I will add."
    second = await listen(model, party.asking("Add.", first.reply, answered(first)))
    assert second.text == "Two."


async def test_a_forced_turn_may_follow_and_be_followed_by_turns_that_think(model: ModelStrategy, party: Party) -> None:
    if not party.card.honours_forced_tool:
        pytest.skip("this vendor honours no forced tool")
    first = await listen(model, party.asking("Add 1 + 1.", must_call="calculator"))
    second = await listen(model, party.asking("Add 1 + 1.", first.reply, answered(first)))
    assert second.reply.text
    third = party.asking("Add 1 + 1.", first.reply, answered(first), must_call="calculator")
    assert (await listen(model, third)).reply.tool_calls


async def test_turns_of_another_vendor_are_told_in_words_and_calls(model: ModelStrategy, party: Party) -> None:
    blocks = ({"type": "thinking", "thinking": "Theirs alone.", "signature": "theirs"},)
    wish = (ToolCall("call_1", "calculator", {"expression": "1 + 1"}),)
    told = AssistantMessage("Let me see.", wish, "somebody else", blocks)
    results = ToolResults((ToolResult("call_1", "calculator", "2", ok=False),))
    history = (UserMessage("Hello"), AssistantMessage(""), UserMessage("  "), told, results, UserMessage("And now?"))
    assert (await listen(model, party.asking(*history))).text
    assert "Theirs alone" not in str(party.fake.requests()[-1]["body"])


async def test_the_prompt_of_a_later_turn_begins_with_that_of_the_earlier_one(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(calls(ADD), says("Two."))
    messages: list[Message] = [UserMessage("Add.")]
    first = await listen(model, party.asking(*messages))
    await listen(model, party.asking(*messages, first.reply, answered(first)))
    before, after = (seen["body"] for seen in party.fake.requests())
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert (after["tools"], after.get("system")) == (before["tools"], before.get("system"))


# Ends that are none


async def test_a_refusal_is_no_fault(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("I cannot", stop_reason="refusal", category="content_filter"))
    heard = await listen(model, party.asking("Do it."))
    assert heard.refusal is not None
    assert heard.refusal.category == "content_filter"


@pytest.mark.parametrize("turn", [Turn(), says(" \n"), Turn((Thinking("Hm."),))], ids=["nothing", "blank", "thought"])
async def test_an_answer_without_words_or_calls_is_a_fault(model: ModelStrategy, party: Party, turn: Turn) -> None:
    party.fake.script(turn)
    heard = await listen(model, party.asking("Well?"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.EMPTY


STATUSES = {
    **{status: {FaultKind.REJECTED} for status in (400, 401, 402, 403, 404, 413, 422)},
    429: {FaultKind.RATE_LIMITED},
    **{status: {FaultKind.SERVER} for status in (500, 502, 504)},
    503: {FaultKind.SERVER, FaultKind.OVERLOADED},
    529: {FaultKind.OVERLOADED},
}


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_says_how_the_call_failed_and_is_not_asked_again(
    model: ModelStrategy, party: Party, status: int
) -> None:
    party.fake.script(fails(status, f"The key {KEY} will not do."))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind in STATUSES[status]
    assert "will not do" in heard.fault.detail
    assert KEY not in heard.fault.detail
    assert len(party.fake.requests()) == 1


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None), (None, None), ("inf", None)])
async def test_the_vendors_wish_to_wait_is_passed_on(
    model: ModelStrategy, party: Party, header: str | None, seconds: float | None
) -> None:
    party.fake.script(fails(429, retry_after=header))
    heard = await listen(model, party.asking("Hello"))
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
    model: ModelStrategy, party: Party, error_type: str, kind: FaultKind
) -> None:
    party.fake.script(says("one two three four", error_after=2, error_type=error_type))
    heard = await listen(model, party.asking("Count."))
    assert heard.fault is not None
    assert heard.fault.kind is kind


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "patience"),
    [
        ("headers", Patience(first_token_seconds=0.1)),
        ("first_token", Patience(first_token_seconds=0.1)),
        ("queued", Patience(first_token_seconds=0.1)),
        ("middle", Patience(silence_seconds=0.1)),
        ("kept_alive", Patience(silence_seconds=0.1)),
    ],
)
async def test_silence_is_a_timeout_and_the_connection_is_closed(party: Party, where: str, patience: Patience) -> None:
    """Comments that only keep the connection open are silence, too."""
    party.fake.script(says("one two three four", stall=where, each_ms=5))
    async with party.speaking(patience=replace(patience, pause_seconds=0)) as hasty:
        heard = await listen(hasty, party.asking("Count."))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.TIMEOUT
    assert bool(heard.text) is (where in ("middle", "kept_alive"))
    await seen_closed(party.fake)


@pytest.mark.parametrize("opening", ["{broken", "[]", "7", '"words"'])
async def test_a_stream_that_cannot_be_read_is_malformed(model: ModelStrategy, party: Party, opening: str) -> None:
    party.fake.script(says("Hello", opening=opening))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.MALFORMED


async def test_an_event_of_a_new_kind_is_passed_over(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("Hello", opening='{"type": "something_new"}'))
    assert (await listen(model, party.asking("Hello"))).reply.text == "Hello"


# The connection


async def test_a_connection_dropped_before_an_answer_is_a_fault_of_the_connection(
    model: ModelStrategy, party: Party
) -> None:
    party.fake.script(Turn(is_dropped=True))
    heard = await listen(model, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.CONNECTION
    assert len(party.fake.requests()) == 1


async def test_a_server_that_is_not_there_is_a_fault_of_the_connection(party: Party) -> None:
    async with party.speaking(address="http://127.0.0.1:9") as lost:
        heard = await listen(lost, party.asking("Hello"))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.CONNECTION


async def test_leaving_early_closes_the_connection_to_the_vendor(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("word " * 1000, each_ms=5))
    async with aclosing(model.stream(party.asking("Tell me."))) as events:
        async for event in events:
            assert isinstance(event, TextPiece)
            break
    await seen_closed(party.fake)


async def test_a_cancelled_task_closes_the_connection_to_the_vendor(model: ModelStrategy, party: Party) -> None:
    party.fake.script(says("word " * 1000, first_ms=60_000))
    task = asyncio.create_task(listen(model, party.asking("Tell me.")))
    while not party.fake.requests():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await seen_closed(party.fake)


async def test_turns_share_a_connection(model: ModelStrategy, party: Party) -> None:
    for _ in range(3):
        await listen(model, party.asking("Hello"))
    assert len({seen["connection"] for seen in party.fake.requests()}) == 1


# Wherever the network cuts


WHOLE = Turn((Thinking("Hm ✓"), Text("Größe"), Call("calculator", {"a": 1}, id="a"), Call("other", {"b": "ü"}, id="b")))


@pytest_asyncio.fixture(loop_scope="module")
async def whole(model: ModelStrategy, party: Party) -> TurnComplete:
    party.fake.script(WHOLE)
    return (await listen(model, party.asking("<whole>"))).turn


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["cut_at", "ends_at"])
async def test_a_body_that_ends_at_any_byte_is_the_whole_turn_or_a_fault(
    model: ModelStrategy, party: Party, whole: TurnComplete, end: str
) -> None:
    """`cut_at` drops the connection, `ends_at` closes the body as if that had been all."""
    size = party.fake.requests()[0]["body_bytes"]
    ends = [*range(0, size, 2 * STEP), size]
    heard = await listen_to_each(model, party, {f"<{end} {at}>": replace(WHOLE, **{end: at}) for at in ends})
    was_whole = []
    for at in ends:
        one = heard[f"<{end} {at}>"]
        was_whole.append(one.fault is None)
        if one.fault is None:
            assert one.reply == whole.reply
        else:
            assert one.fault.kind is FaultKind.CUT_SHORT, at
    assert was_whole == sorted(was_whole)
    assert not was_whole[0]
    assert was_whole[-1]


@pytest.mark.thorough
async def test_a_body_split_at_any_byte_gives_the_same_turn(
    model: ModelStrategy, party: Party, whole: TurnComplete
) -> None:
    size = party.fake.requests()[0]["body_bytes"]
    splits = range(1, size, STEP)
    turns = {f"<split {at}>": replace(WHOLE, pause_at=at) for at in splits} | {"<bytes>": replace(WHOLE, split=1)}
    heard = await listen_to_each(model, party, turns)
    assert {key: one.reply for key, one in heard.items()} == dict.fromkeys(turns, whole.reply)
    assert {key: one.reasoning for key, one in heard.items()} == dict.fromkeys(
        turns, "Hm ✓" if party.shows_reasoning else ""
    )
