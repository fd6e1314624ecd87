"""Replays agent runs that others recorded through this memory: what it would have sent, and what could still be found.

Every user message starts a run, every assistant message is a model call. Tokens are summed over all calls: the whole
history as it stood against the system prompt and the working messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from chat.memory.results import fold_results
from chat.memory.summary import ANSWER, QUESTION, mechanical
from chat.memory.tokens import count
from chat.memory.working import PastRun, Remembered, working_messages
from chat.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, UserMessage

SHORTEST_VALUE, LONGEST_VALUE = 4, 200


@dataclass(slots=True)
class Replayed:
    """Figures of one recorded run. A value is a string in a tool call's arguments that stood in the history before."""

    tokens_full: int = 0
    tokens_sent: int = 0
    values_needed: int = 0
    values_visible: int = 0
    values_reachable: int = 0
    tool_tokens: int = 0


@dataclass(slots=True)
class _Replay:
    """Where a replay stands: the system prompt, the runs behind it, and the one it is in."""

    window: int
    system: str = ""
    past: list[PastRun] = field(default_factory=list)
    items: dict[str, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    since: int = 0
    full: list[str] = field(default_factory=list)
    figures: Replayed = field(default_factory=Replayed)
    query: Remembered | None = None
    tools: list[Remembered] = field(default_factory=list)
    waiting: list[ToolCall] = field(default_factory=list)
    last_words: str = ""
    full_tokens: int = 0
    tool_tokens: int = 0


def replay(history: Sequence[Mapping[str, Any]], *, window: int) -> Replayed:
    """What one recorded run would have cost and kept; `history` holds messages with `role` and `content`."""
    state = _Replay(window)
    for message in history:
        words = _words(message.get("content"))
        match message["role"]:
            case "system":
                state.system += words
            case "user":
                _ask(state, words)
            case "assistant":
                _call(state, words, list(_calls(message)))
            case "tool":
                _result(state, words)
        state.full.append(words)
        state.full_tokens += count(words)
    return state.figures


def _ask(state: _Replay, words: str) -> None:
    """End the run before and begin the next."""
    if state.query is not None:
        ref = f"{state.query.ref}-r"
        response = Remembered(ref, state.last_words, mechanical(state.last_words, ANSWER)) if state.last_words else None
        state.past.append(PastRun(state.query, tuple(state.tools), response))
        state.items[ref] = state.last_words
    ref = f"q{len(state.past) + 1}"
    state.query, state.tools, state.last_words = Remembered(ref, words, mechanical(words, QUESTION)), [], ""
    state.items[ref] = words
    state.messages = [*working_messages(state.past, window=state.window), UserMessage(words)]
    state.since = len(state.messages)


def _call(state: _Replay, words: str, calls: list[ToolCall]) -> None:
    """One model call: what it was sent is counted, then what it needed is looked for."""
    fold_results(state.messages, since=state.since)
    prompt = "\n".join([state.system, *map(_text, state.messages)])
    state.figures.tokens_full += state.full_tokens
    state.figures.tokens_sent += count(prompt)
    state.figures.tool_tokens += state.tool_tokens
    for call in calls:
        for value in _strings(call.arguments):
            if SHORTEST_VALUE <= len(value) <= LONGEST_VALUE and any(value in earlier for earlier in state.full):
                _look_for(value, prompt, state)
    state.messages.append(AssistantMessage(words, tuple(calls)))
    state.waiting = list(calls)
    state.last_words = words
    if calls:
        written = " ".join(call.written for call in calls)
        state.full.append(written)
        state.full_tokens += count(written)


def _look_for(value: str, prompt: str, state: _Replay) -> None:
    is_visible = value in prompt
    is_reachable = is_visible or any(value in text and f":{ref}" in prompt for ref, text in state.items.items())
    state.figures.values_needed += 1
    state.figures.values_visible += is_visible
    state.figures.values_reachable += is_reachable


def _result(state: _Replay, words: str) -> None:
    if state.query is None:
        return
    ref = f"{state.query.ref}-t{len(state.tools) + 1}"
    call = state.waiting.pop(0) if state.waiting else ToolCall(ref, "tool", {})
    state.items[ref] = words
    state.tools.append(Remembered(ref, words, mechanical(words), tool=call.name))
    state.tool_tokens += count(words)
    result = ToolResult(call.id, call.name, words, ref=ref)
    last = state.messages[-1]
    if isinstance(last, ToolResults):
        state.messages[-1] = ToolResults((*last.results, result))
    else:
        state.messages.append(ToolResults((result,)))


def _text(message: Message) -> str:
    match message:
        case UserMessage():
            return message.sent
        case AssistantMessage(text, calls):
            return "\n".join([text, *(call.written for call in calls)])
        case ToolResults(results):
            return "\n".join(result.sent for result in results)


def _calls(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call
        written = function.get("arguments") or "{}"
        written = written if isinstance(written, str) else orjson.dumps(written).decode()
        try:
            arguments = orjson.loads(written)
        except orjson.JSONDecodeError:
            arguments = None
        yield ToolCall(
            str(call.get("id", "")),
            str(function.get("name", "")),
            arguments if isinstance(arguments, dict) else None,
            written,
        )


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from _strings(part)
        case list():
            for part in value:
                yield from _strings(part)


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
