"""A model call in the words of OpenAI's chat completions, as a dialect speaks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import orjson

from chat.messages import AssistantMessage, Message, ToolCall, ToolResults, ToolSpec, UserMessage
from chat.strategies.base import ModelRequest
from chat.strategies.dialects import Dialect, Extras

THINKS = "enabled"
UNREADABLE_ARGUMENTS = "INVALID_JSON"

Json = dict[str, Any]


def to_parameters(request: ModelRequest, dialect: Dialect) -> Json:
    """The arguments of `chat.completions.create` for this call; what the SDK has no name for is in `extra_body`."""
    shows_tools = request.may_call or dialect.honours_none
    tools = [_tool(spec) for spec in request.tools if shows_tools]
    is_forced = _is_forced(request)
    parameters: Json = {
        "model": request.card.model,
        "messages": list(_conversation(request, dialect)),
        dialect.limit: request.max_tokens,
        "stream_options": {"include_usage": True},
    }
    if tools:
        parameters["tools"] = tools
        if is_forced:
            parameters["tool_choice"] = {"type": "function", "function": {"name": request.must_call}}
        elif not request.may_call:
            parameters["tool_choice"] = "none"
        if dialect.parallel:
            parameters["parallel_tool_calls"] = True
    if extras := dict(_thinking(request, dialect, is_forced=is_forced)):
        parameters["extra_body"] = extras
    return parameters


def _tool(spec: ToolSpec) -> Json:
    parameters = {"type": "object", "properties": {}, **spec.parameters}
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    }


def _is_forced(request: ModelRequest) -> bool:
    is_offered = any(spec.name == request.must_call for spec in request.tools)
    return is_offered and request.may_call and request.card.honours_forced_tool


def _thinking(request: ModelRequest, dialect: Dialect, *, is_forced: bool) -> Extras:
    """A forced tool excludes thinking, and so do tool turns without the reasoning that would have to come back."""
    if request.card.thinking != THINKS:
        return dialect.unasked
    is_held_back = is_forced or (request.tools and not dialect.thinks_beside_tools)
    return dialect.holds_back if is_held_back or _lacks_reasoning(request.messages, dialect) else dialect.thinks


def _lacks_reasoning(messages: tuple[Message, ...], dialect: Dialect) -> bool:
    """Whether a tool turn was written without reasoning, or by somebody else."""
    field = dialect.returns_reasoning
    return bool(field) and any(
        isinstance(message, AssistantMessage) and message.tool_calls and not _told(message, dialect).get(field)
        for message in messages
    )


def _conversation(request: ModelRequest, dialect: Dialect) -> Iterator[Json]:
    if request.system.strip():
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        match message:
            case UserMessage():
                yield {"role": "user", "content": message.sent if message.sent.strip() else "(an empty message)"}
            case ToolResults():
                for result in message.results:
                    yield {"role": "tool", "tool_call_id": result.call_id, "content": result.sent}
            case AssistantMessage():
                if message.tool_calls or message.text.strip():
                    yield _told(message, dialect)
            case _:
                assert_never(message)


def _told(message: AssistantMessage, dialect: Dialect) -> Json:
    """A turn as it goes back: to the vendor that wrote it word for word, to any other in words and calls."""
    if message.vendor == dialect.name and message.blocks:
        return message.blocks[0]
    return assistant(message.text, (written_call(call) for call in message.tool_calls))


def assistant(text: str, calls: Iterable[Json]) -> Json:
    told: Json = {"role": "assistant", "content": text or None}
    if written := list(calls):
        told["tool_calls"] = written
    return told


def written_call(call: ToolCall, written: str = "") -> Json:
    """A call as it is taken back, as `written` where that is known; arguments that were no object become one."""
    if call.arguments is None:
        written = orjson.dumps({UNREADABLE_ARGUMENTS: call.written}).decode()
    arguments = written or orjson.dumps(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
