"""A model call in the words of the Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from chat.messages import AssistantMessage, Message, ToolCall, ToolResult, ToolResults, ToolSpec, UserMessage
from chat.strategies.base import ModelRequest

VENDOR = "anthropic"
UNREADABLE_ARGUMENTS = "INVALID_JSON"
MIN_THINKING_TOKENS = 1024

Json = dict[str, Any]


def to_parameters(request: ModelRequest) -> Json:
    """The arguments of `messages.create` for this call.

    At most four cache breakpoints: behind the tools, the system prompt, the last question among the settled messages,
    and the last settled message. The one behind the question keeps the prefix within the vendor's look-back of twenty
    blocks when a turn calls many tools at once.
    """
    parameters: Json = {
        "model": request.card.model,
        "max_tokens": request.max_tokens,
        "messages": _conversation(request.messages, _breakpoints(request.messages[: request.settled])),
    }
    if request.system.strip():
        parameters["system"] = [_marked({"type": "text", "text": request.system})]
    tools = [_tool(spec) for spec in request.tools] or _remembered_tools(request.messages)
    if tools:
        tools[-1] = _marked(tools[-1])
        parameters["tools"] = tools
    choice = _tool_choice(request)
    if choice is not None and tools:
        parameters["tool_choice"] = choice
    thinking = _thinking(request, is_forced=choice is not None and choice["type"] == "tool")
    if thinking is not None:
        parameters["thinking"] = thinking
    return parameters


def _tool(spec: ToolSpec) -> Json:
    return {"name": spec.name, "description": spec.description, "input_schema": {"type": "object", **spec.parameters}}


def _remembered_tools(messages: Iterable[Message]) -> list[Json]:
    """The API takes no tool calls in messages without tools beside them, so the names used stand in."""
    names = dict.fromkeys(
        call.name for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    )
    return [{"name": name, "description": "No longer offered.", "input_schema": {"type": "object"}} for name in names]


def _tool_choice(request: ModelRequest) -> Json | None:
    if not request.tools or not request.may_call:
        return {"type": "none"}
    is_offered = any(spec.name == request.must_call for spec in request.tools)
    if is_offered and request.card.honours_forced_tool:
        return {"type": "tool", "name": request.must_call}
    return None


def _thinking(request: ModelRequest, *, is_forced: bool) -> Json | None:
    """A forced tool excludes thinking; manual thinking cannot begin in the middle of a tool loop."""
    match request.card.thinking:
        case "adaptive":
            return {"type": "disabled"} if is_forced else {"type": "adaptive", "display": "summarized"}
        case "manual":
            budget = request.max_tokens // 2
            if is_forced or budget < MIN_THINKING_TOKENS or not _loop_began_thinking(request.messages):
                return None
            return {"type": "enabled", "budget_tokens": budget}
    return None


def _loop_began_thinking(messages: tuple[Message, ...]) -> bool:
    if not messages or not isinstance(messages[-1], ToolResults):
        return True
    last = next((message for message in reversed(messages) if isinstance(message, AssistantMessage)), None)
    return last is not None and last.vendor == VENDOR and bool(last.blocks) and "thinking" in last.blocks[0]["type"]


def _breakpoints(settled: tuple[Message, ...]) -> frozenset[int]:
    if not settled:
        return frozenset()
    end = len(settled) - 1
    questions = (index for index in range(end, -1, -1) if isinstance(settled[index], UserMessage))
    return frozenset({end, next(questions, end)})


def _conversation(messages: tuple[Message, ...], breakpoints: frozenset[int]) -> list[Json]:
    """The messages with alternating roles; neighbours of one role become one message."""
    turns: list[Json] = []
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        if index in breakpoints:
            blocks = _marked_last(blocks)
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[Json]:
    match message:
        case UserMessage():
            return [{"type": "text", "text": message.sent if message.sent.strip() else "(an empty message)"}]
        case ToolResults():
            return [_result(result) for result in message.results]
        case AssistantMessage():
            if message.vendor == VENDOR and message.blocks:
                return list(message.blocks)
            words: list[Json] = [{"type": "text", "text": message.text}] if message.text.strip() else []
            return words + [tool_use(call) for call in message.tool_calls]
        case _:
            assert_never(message)


def _result(result: ToolResult) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.sent}
    return block if result.ok else {**block, "is_error": True}


def tool_use(call: ToolCall) -> Json:
    """A call as the API takes it back; its input has to be an object even when the model wrote none."""
    arguments = call.arguments if call.arguments is not None else {UNREADABLE_ARGUMENTS: call.written}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _marked(block: Json) -> Json:
    return {**block, "cache_control": {"type": "ephemeral"}}


def _marked_last(blocks: list[Json]) -> list[Json]:
    """A breakpoint behind the last block; reasoning cannot carry one."""
    if not blocks or "thinking" in blocks[-1]["type"]:
        return blocks
    return [*blocks[:-1], _marked(blocks[-1])]
