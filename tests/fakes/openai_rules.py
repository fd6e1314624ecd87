"""The rules a request for chat completions has to keep, as strictly as each vendor keeps them."""

from __future__ import annotations

import re
from typing import Any

import orjson
from jsonschema import Draft202012Validator, SchemaError

from tests.fakes.openai_manners import Manners, is_thinking

SHARED = frozenset(
    {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens", "temperature", "top_p"}
)
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ROLES = {"system", "user", "assistant", "tool"}
MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content", "reasoning"},
    "tool": {"role", "content", "tool_call_id"},
}


class BadRequest(Exception):
    """The vendor's sentence for a request it does not take, with its status and its word for it."""

    def __init__(self, sentence: str, *, status: int = 400, code: str = "invalid_request_error") -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code


def require(is_met: bool, sentence: str) -> None:
    if not is_met:
        raise BadRequest(sentence)


class Rules:
    """Checks requests, remembering what was issued with each call: reasoning, or a signature of it."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners
        self._reasoning_of_call: dict[str, str] = {}
        self._extra_of_call: dict[str, Any] = {}

    def remember(self, call_id: str, *, reasoning: str, extra: Any) -> None:
        self._reasoning_of_call[call_id] = reasoning
        self._extra_of_call[call_id] = extra

    def check(self, body: Any) -> None:
        """Raises BadRequest with the first rule that is broken."""
        require(isinstance(body, dict), "The request body must be a JSON object.")
        for name in body:
            require(name in SHARED or name in self._manners.fields, f"Unrecognized request argument supplied: {name}")
        self._check_model(body.get("model"))
        limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if name in body]
        require(all(type(limit) is int and limit >= 1 for limit in limits), "max_tokens: at least 1")
        require("stream_options" not in body or body.get("stream") is True, "stream_options: only with stream")
        _check_tools(body)
        self._check_thinking(body)
        self._check_messages(body)

    def _check_model(self, model: Any) -> None:
        require(isinstance(model, str) and model != "", "you must provide a model parameter")
        if not self._manners.models or model in self._manners.models:
            return
        match self._manners.name:
            case "deepseek":
                raise BadRequest("Model Not Exist")
            case "ollama":
                raise BadRequest(f'model "{model}" not found', status=404, code="not_found_error")
            case _:
                raise BadRequest(f"The model `{model}` does not exist.", status=404, code="model_not_found")

    def _check_thinking(self, body: dict[str, Any]) -> None:
        choice = body.get("tool_choice")
        is_forced = isinstance(choice, dict) or choice == "required"
        match self._manners.name:
            case "deepseek" if is_forced and is_thinking(body, self._manners):
                raise BadRequest("Thinking mode does not support this tool_choice")
            case "qwen_thinking" | "qwen_instruct" if is_thinking(body, self._manners):
                require(
                    not is_forced,
                    "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set "
                    "to required or object in thinking mode",
                )
                require(
                    body.get("stream") is True,
                    "parameter.enable_thinking must be set to false for non-streaming calls",
                )
            case "openai":
                require(
                    "max_tokens" not in body or body["model"].startswith("gpt-4"),
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                    "instead.",
                )
                is_effortless = body.get("reasoning_effort") == "none" or body["model"].startswith("gpt-4")
                require(
                    is_effortless or not body.get("tools"),
                    f"Function tools with reasoning_effort are not supported for {body['model']} in "
                    "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
                )

    def _check_messages(self, body: dict[str, Any]) -> None:
        messages = body.get("messages")
        require(isinstance(messages, list) and bool(messages), "messages: at least one message is required")
        assert isinstance(messages, list)
        owed: list[str] = []
        for index, message in enumerate(messages):
            _check_message(message, f"messages[{index}]")
            if message["role"] == "tool":
                require(
                    message.get("tool_call_id") in owed,
                    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
                )
                owed.remove(message["tool_call_id"])
                continue
            _require_answered(owed)
            for call in message.get("tool_calls") or ():
                self._check_call(call, message, body)
                owed.append(call["id"])
        _require_answered(owed)

    def _check_call(self, call: Any, message: dict[str, Any], body: dict[str, Any]) -> None:
        function = call.get("function") or {}
        require(isinstance(call.get("id"), str) and call.get("type") == "function", "tool_calls: id and type required")
        require(bool(NAME.fullmatch(function.get("name") or "")), "tool_calls: invalid function name")
        _require_object(function.get("arguments"))
        issued = self._reasoning_of_call.get(call["id"], "")
        if self._manners.returns and is_thinking(body, self._manners):
            told = message.get("reasoning_content")
            require(
                bool(told) and told == (issued or told),
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
            )
        extra = self._extra_of_call.get(call["id"])
        require(
            extra is None or call.get("extra_content") == extra,
            "Function call is missing a thought_signature in functionCall parts.",
        )


def _require_object(arguments: Any) -> None:
    try:
        is_object = isinstance(orjson.loads(arguments), dict)
    except (orjson.JSONDecodeError, TypeError):
        is_object = False
    require(is_object, "tool_calls: function.arguments must be a JSON object in a string")


def _require_answered(owed: list[str]) -> None:
    require(
        not owed,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(owed)}",
    )


def _check_message(message: Any, where: str) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    require(role in ROLES, f"{where}.role: invalid")
    extra = set(message) - MESSAGE_FIELDS[str(role)]
    require(not extra, f"{where}: unknown fields {sorted(extra)}")
    content = message.get("content")
    may_be_null = role == "assistant" and bool(message.get("tool_calls"))
    require(isinstance(content, str) or (content is None and may_be_null), f"{where}.content: expected a string")


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    require(isinstance(tools, list) and (bool(tools) or "tools" not in body), "tools: [] is too short")
    names = [(tool.get("function") or {}).get("name") or "" for tool in tools]
    require(len(set(names)) == len(names), "tools: names must be unique")
    for tool, name in zip(tools, names, strict=True):
        require(tool.get("type") == "function" and bool(NAME.fullmatch(name)), f"tools: invalid name {name!r}")
        schema = tool["function"].get("parameters")
        require(isinstance(schema, dict) and schema.get("type") == "object", f"{name}: parameters must be an object")
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise BadRequest(f"Invalid schema for function '{name}': {error.message}") from error
    choice = body.get("tool_choice")
    if choice is None:
        return
    require(bool(tools), "tool_choice: only allowed when tools are specified")
    if isinstance(choice, dict):
        chosen = (choice.get("function") or {}).get("name")
        require(choice.get("type") == "function" and chosen in names, f"tool_choice: {chosen!r} is not in tools")
    else:
        require(choice in ("none", "auto", "required"), "tool_choice: unknown")
