"""A request for chat completions in the form the scripted model reads, so that one model answers for every vendor."""

from __future__ import annotations

from typing import Any

import orjson

from tests.fakes.openai_manners import Manners, is_thinking

Json = dict[str, Any]
_MARK = {"cache_control": {"type": "ephemeral"}}  # these vendors cache every prefix without being asked


def told(body: Json, manners: Manners) -> Json:
    """Messages with blocks, tools with an input schema, the choice of one where the vendor honours it, and `thinks`."""
    messages: list[Json] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += _blocks(message)
        else:
            messages.append({"role": role, "content": _blocks(message)})
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    tools = [_tool(tool["function"]) for tool in body.get("tools") or ()]
    found: Json = {"messages": messages, "tools": tools, "system": [_text(words) for words in system]}
    found["thinks"] = is_thinking(body, manners)
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and manners.honours_forced:
        found["tool_choice"] = {"type": "tool", "name": choice["function"]["name"]}
    elif choice == "none" and manners.honours_none:
        found["tool_choice"] = {"type": "none"}
    return found


def _tool(function: Json) -> Json:
    return {"name": function["name"], "input_schema": function["parameters"], **_MARK}


def _blocks(message: Json) -> list[Json]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"], **_MARK}]
    words = [_text(message["content"])] if message.get("content") else []
    return words + [
        {"type": "tool_use", "id": call["id"], "name": function["name"], "input": orjson.loads(function["arguments"])}
        for call in message.get("tool_calls") or ()
        if (function := call["function"])
    ]


def _text(words: str) -> Json:
    return {"type": "text", "text": words, **_MARK}
