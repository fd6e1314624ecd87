"""The rules a request to the Messages API has to keep, as strictly as the vendor keeps them."""

from __future__ import annotations

import re
from typing import Any

import orjson
from jsonschema import Draft202012Validator, SchemaError

REQUIRED = ("model", "messages", "max_tokens")
OPTIONAL = ("stream", "system", "tools", "tool_choice", "thinking", "metadata", "stop_sequences", "cache_control")
RARE = ("output_config", "service_tier", "container", "inference_geo", "speed", "diagnostics")
KNOWN = frozenset({*REQUIRED, *OPTIONAL, *RARE})
SAMPLING = ("temperature", "top_p", "top_k")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MOST_MARKS = 4
USER_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_result"})
ASSISTANT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
FIELDS: dict[str, dict[str, Any]] = {
    "text": {"text": str, "citations": list},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str, "content": (str, list), "is_error": bool},
}


class BadRequest(Exception):
    """The vendor's sentence for a 400."""


def require(is_met: bool, sentence: str) -> None:
    if not is_met:
        raise BadRequest(sentence)


class Rules:
    """Checks requests, remembering what was issued: signatures, and the reasoning that led to each tool call."""

    def __init__(self, is_genuine: Any) -> None:
        self._is_genuine = is_genuine
        self._reasoning_before_call: dict[str, bytes] = {}
        self._sound_tools: set[bytes] = set()

    def remember(self, reasoning: list[dict[str, Any]], call_ids: list[str]) -> None:
        """What was issued: these calls have to come back behind this reasoning, byte for byte."""
        if reasoning:
            written = orjson.dumps(reasoning)
            for call_id in call_ids:
                self._reasoning_before_call[call_id] = written

    def check(self, body: Any, *, is_count: bool = False) -> None:
        """Raises BadRequest with the first rule that is broken."""
        require(isinstance(body, dict), "The request body must be a JSON object.")
        for name in SAMPLING:
            require(name not in body, f"`{name}` is not supported with anthropic-version 2026-10-21.")
        for name in body:
            require(name in KNOWN, f"{name}: Extra inputs are not permitted")
        require(isinstance(body.get("model"), str) and body["model"] != "", "model: Field required")
        if not is_count:
            tokens = body.get("max_tokens")
            require(type(tokens) is int and tokens >= 1, "max_tokens: Field required, at least 1")
        require(isinstance(body.get("stream", False), bool), "stream: Input should be a valid boolean")
        self._check_tools(body)
        self._check_thinking(body)
        _check_system(body.get("system", []))
        self._check_messages(body)
        marks = orjson.dumps(body).count(b'"cache_control":{')
        require(
            marks <= MOST_MARKS,
            f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {marks}.",
        )

    def _check_tools(self, body: dict[str, Any]) -> None:
        tools = body.get("tools", [])
        require(isinstance(tools, list), "tools: Input should be a valid list")
        written = orjson.dumps(tools)
        if written not in self._sound_tools:
            _check_tool_list(tools)
            self._sound_tools.add(written)
        choice = body.get("tool_choice")
        if choice is None:
            return
        require(bool(tools), "tool_choice: may only be specified while providing tools")
        require(choice.get("type") in ("auto", "any", "tool", "none"), "tool_choice.type: unknown")
        if choice["type"] == "tool":
            known = {tool["name"] for tool in tools}
            require(choice.get("name") in known, f"Tool '{choice.get('name')}' not found in provided tools")

    def _check_thinking(self, body: dict[str, Any]) -> None:
        thinking = body.get("thinking")
        if thinking is None:
            return
        kind = thinking.get("type")
        require(kind in ("adaptive", "enabled", "disabled", "between_tools"), "thinking.type: unknown")
        if kind == "enabled":
            budget = thinking.get("budget_tokens")
            require(type(budget) is int and budget >= 1024, "thinking.enabled.budget_tokens: at least 1024")
            require(
                budget < body.get("max_tokens", budget + 1), "`max_tokens` must be greater than the thinking budget"
            )
        require(thinking.get("display", "summarized") in ("summarized", "omitted"), "thinking.display: unknown")
        forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
        require(
            not (forced and kind in ("enabled", "adaptive")),
            "Thinking may not be enabled when tool_choice forces tool use.",
        )

    def _check_messages(self, body: dict[str, Any]) -> None:
        messages = body.get("messages")
        require(isinstance(messages, list) and bool(messages), "messages: at least one message is required")
        assert isinstance(messages, list)
        for index, message in enumerate(messages):
            role = "assistant" if index % 2 else "user"
            require(
                isinstance(message, dict) and message.get("role") == role,
                f"messages.{index}.role: roles must alternate and begin with user; expected {role}",
            )
            allowed = USER_BLOCKS if role == "user" else ASSISTANT_BLOCKS
            _check_content(message.get("content"), f"messages.{index}.content", allowed)
        require(len(messages) % 2 == 1, "This model does not support assistant message prefill.")
        is_thinking = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        seen: set[str] = set()
        for index in range(1, len(messages), 2):
            self._check_assistant(messages[index], f"messages.{index}", is_thinking=is_thinking)
            _check_answers(messages[index], messages[index + 1], index, seen)
        _check_orphans(messages)
        require(
            bool(body.get("tools")) or not any(_of_type(m, "tool_use") for m in messages),
            "Requests which include `tool_use` or `tool_result` blocks must define tools.",
        )
        if (body.get("thinking") or {}).get("type") == "enabled" and _of_type(messages[-1], "tool_result"):
            first = messages[-2]["content"][0]["type"]
            require(
                first in ("thinking", "redacted_thinking"),
                f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, "
                f"but found `{first}`.",
            )

    def _check_assistant(self, message: dict[str, Any], where: str, *, is_thinking: bool) -> None:
        reasoning = [*_of_type(message, "thinking"), *_of_type(message, "redacted_thinking")]
        for block in reasoning:
            require(self._is_genuine(block), f"{where}: Invalid `signature` in `{block['type']}` block")
        for call in _of_type(message, "tool_use"):
            issued = self._reasoning_before_call.get(call["id"])
            if issued is not None and is_thinking:
                bare = [{k: v for k, v in block.items() if k != "cache_control"} for block in reasoning]
                require(
                    orjson.dumps(bare) == issued,
                    f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                    "modified. These blocks must remain as they were in the original response.",
                )


def _check_tool_list(tools: list[Any]) -> None:
    names = [tool.get("name") for tool in tools]
    require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        extra = set(tool) - {"name", "description", "input_schema", "cache_control", "type", "strict"}
        require(not extra, f"{where}: Extra inputs are not permitted: {sorted(extra)}")
        require(isinstance(tool.get("name"), str) and bool(NAME.fullmatch(tool["name"])), f"{where}.name: invalid")
        require(isinstance(tool.get("description", ""), str), f"{where}.description: invalid")
        schema = tool.get("input_schema")
        require(
            isinstance(schema, dict) and schema.get("type") == "object", f"{where}.input_schema.type: Field required"
        )
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise BadRequest(f"{where}.input_schema: JSON schema is invalid: {error.message}") from error
        _check_mark(tool, where)


def _check_system(system: Any) -> None:
    if not isinstance(system, str):
        _check_content(system, "system", frozenset({"text"}), may_be_empty=True)


def _check_content(content: Any, where: str, allowed: frozenset[str], *, may_be_empty: bool = False) -> None:
    if isinstance(content, str):
        require(bool(content.strip()), f"{where}: text content must contain non-whitespace text")
        return
    require(isinstance(content, list), f"{where}: Input should be a valid list")
    require(bool(content) or may_be_empty, f"{where}: at least one block is required")
    for index, block in enumerate(content):
        spot = f"{where}.{index}"
        require(isinstance(block, dict) and block.get("type") in allowed, f"{spot}.type: unexpected")
        _check_block(block, spot)
        _check_mark(block, spot)


def _check_block(block: dict[str, Any], where: str) -> None:
    fields = FIELDS.get(block["type"])
    if fields is None:
        return
    extra = set(block) - set(fields) - {"type", "cache_control"}
    require(not extra, f"{where}: Extra inputs are not permitted: {sorted(extra)}")
    for name, kind in fields.items():
        optional = name in ("citations", "content", "is_error")
        require(
            isinstance(block.get(name), kind) or (optional and name not in block), f"{where}.{name}: Field required"
        )
    if block["type"] == "text":
        require(bool(block["text"].strip()), f"{where}: text content blocks must contain non-whitespace text")


def _check_mark(block: dict[str, Any], where: str) -> None:
    mark = block.get("cache_control")
    if mark is None:
        return
    require(
        mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h"), f"{where}.cache_control: invalid"
    )
    require("thinking" not in block.get("type", ""), f"{where}: cache_control cannot be set for thinking blocks")


def _of_type(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block["type"] == kind]


def _check_answers(asked: dict[str, Any], answered: dict[str, Any], index: int, seen: set[str]) -> None:
    ids = [call["id"] for call in _of_type(asked, "tool_use")]
    require(len(set(ids)) == len(ids) and not seen & set(ids), "messages: `tool_use` ids must be unique")
    seen.update(ids)
    content = answered["content"]
    leading: list[str] = []
    for block in () if isinstance(content, str) else content:
        if block["type"] != "tool_result":
            break
        leading.append(block["tool_use_id"])
    missing = [call_id for call_id in ids if call_id not in leading]
    require(
        not missing,
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
    )


def _check_orphans(messages: list[dict[str, Any]]) -> None:
    for index in range(0, len(messages), 2):
        asked = {call["id"] for call in _of_type(messages[index - 1], "tool_use")} if index else set()
        results = [block["tool_use_id"] for block in _of_type(messages[index], "tool_result")]
        require(
            set(results) <= asked and len(set(results)) == len(results),
            f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must "
            "have a corresponding `tool_use` block in the previous message.",
        )
