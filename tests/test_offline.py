"""The strategy without a model: it uses the tools, says what they gave, and says what it is."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

import pytest

from chat.messages import AssistantMessage, Message, ToolResult, ToolResults
from chat.strategies.base import TextPiece
from chat.strategies.offline import Offline
from chat.strategies.spoken_sums import sums_in
from chat.tools.calculator import NotArithmetic, calculate, written
from tests.fakes.listener import Heard, asking, listen
from tests.harness.doors import by_key

OFFLINE = Offline(pause_seconds=0)


async def ask(*messages: Message | str) -> tuple[Heard, list[str]]:
    """The answer to the last question, with the calculator's real results, and the sums it was asked for."""
    first = await listen(OFFLINE, asking(*messages))
    if not first.reply.tool_calls:
        return first, []
    results, expressions = [], []
    for call in first.reply.tool_calls:
        assert call.arguments is not None
        expression = call.arguments["expression"]
        expressions.append(expression)
        try:
            results.append(ToolResult(call.id, call.name, f"{expression} = {written(calculate(expression))}"))
        except NotArithmetic as error:
            results.append(ToolResult(call.id, call.name, str(error), ok=False))
    return await listen(OFFLINE, asking(*messages, first.reply, ToolResults(tuple(results)))), expressions


async def test_a_sum_is_worked_out_by_the_calculator_and_the_answer_says_so() -> None:
    answer, expressions = await ask("What is 17.5 % of 2,480?")
    assert expressions == ["17.5 % of 2,480"]
    assert answer.text.startswith("17.5 % of 2,480 is **434**.\n\n")
    assert "without a model" in answer.text
    assert answer.reply.text == answer.text


async def test_two_sums_are_two_calls_of_one_turn() -> None:
    answer, expressions = await ask("What is 17.5 % of 2,480 and how much is 3 times 129.95?")
    assert expressions == ["17.5 % of 2,480", "3 × 129.95"]
    assert "- 17.5 % of 2,480 is **434**.\n- 3 × 129.95 is **389.85**." in answer.text


async def test_that_means_the_last_result() -> None:
    first, _ = await ask("What is 17.5 % of 2,480?")
    answer, expressions = await ask("What is 17.5 % of 2,480?", AssistantMessage(first.text), "and 20 % of that?")
    assert expressions == ["20 % of 434"]
    assert "**86.8**" in answer.text


async def test_a_sum_the_calculator_refuses_is_said_so() -> None:
    answer, _ = await ask("What is 1 / 0?")
    assert "could not be worked out" in answer.text
    assert "divides by zero" in answer.text


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How much is 3 times 129.95?", "389.85"),
        ("square root of 1764", "42"),
        ("(3 + 4) * 2^10", "7168"),
        ("what's 5 - -3", "8"),
        ("10 divided by 4", "2.5"),
        ("3 x 4", "12"),
        ("7 squared plus 2", "51"),
        ("2+2=", "4"),
        ("What is 24/7?", "3.42857142857"),
        ("12.5 per cent of 80, please", "10"),
        ("-5 + 3 =", "-2"),
    ],
)
async def test_sums_as_people_write_them(question: str, value: str) -> None:
    answer, _ = await ask(question)
    assert f"**{value}**" in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "Call me on 555-1234 on 2026-11-20.",
        "2026-11-20",
        "Is 17.5% good?",
        "version 1.2.3 of 5",
        "between 3-5 days",
        "((((((",
        "%%% of %%%",
        "+ + +",
        "",
    ],
)
def test_what_only_looks_like_a_sum_is_left_alone(question: str) -> None:
    assert sums_in(question) == ()


async def test_a_sum_without_the_calculator_says_what_is_missing() -> None:
    heard = await listen(OFFLINE, asking("What is 2 + 2?", with_tools=False))
    assert heard.reply.tool_calls == ()
    assert "calculator" in heard.text


async def test_tools_that_may_not_be_called_are_not_called() -> None:
    heard = await listen(OFFLINE, replace(asking("What is 2 + 2?"), may_call=False))
    assert heard.reply.tool_calls == ()
    assert heard.text


@pytest.mark.parametrize("question", ["Who wrote Faust?", "مرحبا", "<script>alert(1)</script>", "x" * 32_000, "[[["])
async def test_anything_else_is_answered_with_what_it_can_do_and_how_to_connect_a_model(question: str) -> None:
    heard = await listen(OFFLINE, asking(question))
    assert "ANTHROPIC_API_KEY" in heard.text
    assert "without a model" in heard.text
    assert question not in heard.text


@pytest.mark.parametrize(
    ("question", "words"),
    [("Count to 200", 200), ("Please write a text of 300 words", 300), ("count to 1", 1)],
)
async def test_a_long_text_has_the_length_that_was_asked_for(question: str, words: int) -> None:
    heard = await listen(OFFLINE, asking(question))
    assert len(heard.text.split()) == words
    assert len(heard.pieces) == (words + 1) // 2
    assert heard.text == heard.reply.text


async def test_lines_are_counted() -> None:
    heard = await listen(OFFLINE, asking("Write 40 lines about anything"))
    assert len(heard.text.splitlines()) == 40


async def test_an_answer_ends_at_the_token_limit_and_says_so() -> None:
    heard = await listen(OFFLINE, replace(asking("Count to 2000"), max_tokens=100))
    assert heard.turn.is_cut
    assert heard.turn.usage.output <= 101


async def test_the_same_question_has_the_same_answer() -> None:
    assert (await ask("What is 2 + 2?"))[0].text == (await ask("What is 2 + 2?"))[0].text


async def test_a_listener_who_leaves_ends_the_answer() -> None:
    async with aclosing(OFFLINE.stream(asking("Count to 2000"))) as events:
        async for event in events:
            assert isinstance(event, TextPiece)
            break


@pytest.mark.parametrize("message", ["\u0088¶", "\u0088", "\u202etnemyap", "¶"])
def test_a_question_that_nobody_can_read_is_searched_for_all_the_same(server: str, message: str) -> None:
    with by_key(server) as alice:
        answer = alice.post("/api/chat/query", {"query": message})
        assert answer.status_code == 200, answer.text
        assert answer.json()["sources"] == []
