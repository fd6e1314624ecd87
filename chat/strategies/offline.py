"""Answers without any model: it uses the tools it is offered, says what they gave, and says what it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import cycle, islice

from chat.messages import AssistantMessage, ToolCall, ToolResult, ToolResults, Usage, UserMessage
from chat.passages import numbered_in
from chat.strategies.base import (
    ArgumentsPiece,
    ModelRequest,
    StrategyEvent,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)
from chat.strategies.spoken_passages import quoted, share_told, words_of
from chat.strategies.spoken_sums import sums_in
from chat.strategies.spoken_weather import place_in, told

NAME = "offline"
WORDS_A_PIECE = 2
CHARACTERS_A_TOKEN = 4
MOST_WORDS = 5_000
MOST_CONFIDENT = 0.8  # sentences with the question's words need not answer it
CALCULATOR = "calculator"
WEATHER = "get_weather"
SEARCHES = ("knowledge_base_search", "rag_search")
DOCUMENTATION = "retrieve_documentation"

_NUMBER = re.compile(r"\[(\d{1,3})\](?!\()")
_RESULT_SHOWN = re.compile(r"\*\*(-?[\d.,]*\d)\*\*")
_COUNT = re.compile(r"\bcount\s+(?:up\s+)?(?:from\s+1\s+)?to\s+(\d{1,4})\b", re.IGNORECASE)
_DOCUMENTATION = re.compile(r"\b(?:documentation|docs)\b(?!.*\bklerai\b)", re.IGNORECASE | re.DOTALL)
_CODE = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1`*[ \t]*$", re.MULTILINE | re.DOTALL)
_WRITE = re.compile(r"\bwrite\b.{0,40}?\b(\d{1,4})\s+(words|lines)\b", re.IGNORECASE | re.DOTALL)
_FILLER = "These words come from no model. They are here so that you can watch an answer arrive and stop it."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a skill may go by: the question, the tools it may call, what they gave, and the number shown last.

    `material` was found for the question before the loop. `must_call` is a tool that has to be used now.
    """

    question: str
    tools: frozenset[str]
    done: tuple[tuple[ToolCall, ToolResult], ...]
    last_result: str | None
    material: str = ""
    must_call: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """Tools to call, with their arguments."""

    calls: tuple[tuple[str, dict[str, object]], ...]


Skill = Callable[[Asked], str | Wish | None]


class Offline:
    """Deterministic, free and without a key. It keeps the contract of any other strategy.

    `pause_seconds` passes between two pieces of an answer, so that a person sees it arrive and can stop it.
    """

    name = NAME

    def __init__(self, *, pause_seconds: float = 0.02) -> None:
        self._pause_seconds = pause_seconds

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        asked = _asked(request)
        answer = next(found for skill in SKILLS if (found := skill(asked)) is not None)
        if isinstance(answer, Wish):
            calls = _calls(answer, request)
            for call in calls:
                yield ToolCallDetected(call.id, call.name)
            reply = AssistantMessage("", calls)
            yield TurnComplete(reply, _usage(request, sum(len(str(call.arguments)) for call in calls)), NAME)
            return
        text = answer[: request.max_tokens * CHARACTERS_A_TOKEN]
        said = self._by_tool(text, asked, request) if request.spoken_tool else self._in_words(text, request)
        is_cut = len(text) < len(answer)
        async with aclosing(said) as pieces:
            async for piece in pieces:
                yield replace(piece, is_cut=is_cut) if isinstance(piece, TurnComplete) else piece

    async def _in_words(self, text: str, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        for index, piece in enumerate(_pieces(text)):
            if index:
                await asyncio.sleep(self._pause_seconds)
            yield TextPiece(piece)
        yield TurnComplete(AssistantMessage(text), _usage(request, len(text)), NAME)

    async def _by_tool(self, text: str, asked: Asked, request: ModelRequest) -> AsyncGenerator[StrategyEvent]:
        """The answer as the arguments of the tool that it has to leave by, with the passages it quotes."""
        numbers = [int(number) for number in dict.fromkeys(_NUMBER.findall(text))]
        head: dict[str, object] = {"sources": numbers}
        if numbers:
            head["confidence_score"] = min(share_told(asked.question, text), MOST_CONFIDENT)
        (call,) = _calls(Wish(((str(request.spoken_tool), {**head, "answer": text}),)), request)
        yield ToolCallDetected(call.id, call.name)
        yield ArgumentsPiece(call.id, f'{json.dumps(head)[:-1]}, "answer": "')
        for piece in _pieces(text):
            yield ArgumentsPiece(call.id, json.dumps(piece)[1:-1])
            await asyncio.sleep(self._pause_seconds)
        yield ArgumentsPiece(call.id, '"}')
        yield TurnComplete(AssistantMessage("", (call,)), _usage(request, len(text)), NAME)


def _do_what_is_owed(asked: Asked) -> Wish | None:
    """The search a mode begins with."""
    is_search = asked.must_call in SEARCHES and asked.must_call in asked.tools
    return Wish(((str(asked.must_call), {"query": _plain(asked.question, most=1_000)}),)) if is_search else None


def _plain(question: str, *, most: int) -> str:
    """The question as a tool takes it: without characters that nobody sees, and never nothing at all."""
    seen = "".join(character if character.isprintable() else " " for character in question)
    return " ".join(seen.split())[:most] or "?"


def _calculate(asked: Asked) -> str | Wish | None:
    """Sums, by the calculator: first the calls, then what came of them."""
    done = [(call, result) for call, result in asked.done if call.name == CALCULATOR]
    if done:
        sentences = [_worded(call, result) for call, result in done]
        told = sentences[0] if len(sentences) == 1 else "\n".join(f"- {sentence}" for sentence in sentences)
        return f"{told}\n\n*Answered without a model: worked out by the calculator.*"
    sums = sums_in(asked.question, last_result=asked.last_result)
    if not sums:
        return None
    if CALCULATOR not in asked.tools:
        return (
            "I can work this out with the calculator only, and it is not available for this question. "
            "Turn tools on and ask again.\n\n*Answered without a model.*"
        )
    return Wish(tuple((CALCULATOR, {"expression": expression}) for expression in sums))


def _tell_weather(asked: Asked) -> str | Wish | None:
    """What the weather tool says of the place the question names."""
    done = [told(result.text) for call, result in asked.done if call.name == WEATHER]
    if done:
        return "\n\n".join([*done, "*Answered without a model: looked up by the weather tool.*"])
    place = place_in(asked.question)
    return Wish(((WEATHER, {"place": place[:100]}),)) if place and WEATHER in asked.tools else None


def _look_up(asked: Asked) -> str | Wish | None:
    """Quotes what the person's documents say, after one search."""
    searched = [result.text for call, result in asked.done if call.name in SEARCHES]
    if not searched and not asked.material:
        tool = next((name for name in SEARCHES if name in asked.tools), None)
        is_question = len(words_of(asked.question)) >= 2
        return Wish(((tool, {"query": _plain(asked.question, most=1_000)}),)) if tool and is_question else None
    return quoted(asked.question, numbered_in("\n".join([asked.material, *searched])))


def _read_documentation(asked: Asked) -> str | Wish | None:
    """Quotes the documentation of a product where that is what the question speaks of."""
    read = [result for call, result in asked.done if call.name == DOCUMENTATION]
    if read:
        text = "\n".join(result.text for result in read if result.ok)
        return quoted(asked.question, numbered_in(_CODE.sub("", text)))
    is_asked = DOCUMENTATION in asked.tools and _DOCUMENTATION.search(asked.question)
    return Wish(((DOCUMENTATION, {"query": _plain(asked.question, most=500)}),)) if is_asked else None


def _write_at_length(asked: Asked) -> str | None:
    """A text of the length that was asked for, to watch an answer arrive and to stop it."""
    count = _COUNT.search(asked.question)
    if count:
        return ", ".join(str(number) for number in range(1, int(count[1]) + 1)) + "."
    order = _WRITE.search(asked.question)
    if not order:
        return None
    length = min(int(order[1]), MOST_WORDS)
    if order[2].lower() == "lines":
        return "\n".join(f"{line}. Line {line} of {length}, written without a model." for line in range(1, length + 1))
    return " ".join(islice(cycle(_FILLER.split()), length))


def _introduce(asked: Asked) -> str:
    """What can be had without a model, and how to connect one."""
    sums = "- **Sums**: “What is 17.5 % of 2,480?” Several at once are fine, and “20 % of that?” afterwards.\n"
    weather = "- **The weather**: “What is the weather in Vienna?”\n"
    return (
        "No language model is connected, so I cannot answer this. Without one I can do this:\n\n"
        "- **What documents say**: “How do daily credits reset?”, or anything your own uploads answer, quoted.\n"
        f"{sums if CALCULATOR in asked.tools else ''}"
        f"{weather if WEATHER in asked.tools else ''}"
        "- **A long answer to try streaming and Stop**: “Count to 500.”\n\n"
        "To connect a model, set `ANTHROPIC_API_KEY` in the environment or in `.env` beside `manage.py`, and start "
        "KlerAI again.\n\n*Answered without a model.*"
    )


SKILLS: tuple[Skill, ...] = (
    *(_do_what_is_owed, _calculate, _tell_weather, _write_at_length),
    *(_read_documentation, _look_up, _introduce),
)


def _worded(call: ToolCall, result: ToolResult) -> str:
    expression = str((call.arguments or {}).get("expression", ""))
    if not result.ok:
        return f"`{expression}` could not be worked out: {result.text}"
    _, _, value = result.text.rpartition("=")
    return f"{expression} is **{value.strip()}**."


def _asked(request: ModelRequest) -> Asked:
    at = max((i for i, message in enumerate(request.messages) if isinstance(message, UserMessage)), default=0)
    question = request.messages[at] if request.messages else UserMessage("")
    calls: dict[str, ToolCall] = {}
    done: list[tuple[ToolCall, ToolResult]] = []
    for message in request.messages[at + 1 :]:
        if isinstance(message, AssistantMessage):
            calls |= {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolResults):
            done += [(calls[result.call_id], result) for result in message.results if result.call_id in calls]
    return Asked(
        question=question.text if isinstance(question, UserMessage) else "",
        tools=frozenset(spec.name for spec in request.tools) if request.may_call else frozenset(),
        done=tuple(done),
        last_result=_last_result(request, at),
        material=question.material if isinstance(question, UserMessage) else "",
        must_call=request.must_call,
    )


def _last_result(request: ModelRequest, at: int) -> str | None:
    for message in reversed(request.messages[:at]):
        if isinstance(message, AssistantMessage):
            shown = _RESULT_SHOWN.findall(message.text)
            return str(shown[-1]) if shown else None
    return None


def _calls(wish: Wish, request: ModelRequest) -> tuple[ToolCall, ...]:
    """Calls whose ids no earlier call of these messages has."""
    earlier = sum(len(message.tool_calls) for message in request.messages if isinstance(message, AssistantMessage))
    return tuple(
        ToolCall(f"offline_{number}", name, dict(arguments))
        for number, (name, arguments) in enumerate(wish.calls, start=earlier + 1)
    )


def _pieces(text: str) -> list[str]:
    words = re.findall(r"\s*\S+\s*", text)
    return ["".join(words[start : start + WORDS_A_PIECE]) for start in range(0, len(words), WORDS_A_PIECE)]


def _usage(request: ModelRequest, written: int) -> Usage:
    read = len(request.system) + sum(len(_read(message)) for message in request.messages)
    return Usage(input=read // CHARACTERS_A_TOKEN + 1, output=written // CHARACTERS_A_TOKEN + 1)


def _read(message: UserMessage | AssistantMessage | ToolResults) -> str:
    if isinstance(message, ToolResults):
        return "".join(result.text for result in message.results)
    return message.text
