"""How the vendors behind chat completions differ on the wire: a row a vendor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manners:
    """What a vendor sends and takes that others do not.

    `base` is where its chat completions lie. `reasoning` names the field its reasoning is in, `returns` is true where
    it has to come back with a tool turn. `calls` is how calls are streamed: `interleaved` pieces by index, `whole` in
    one delta, or `unnumbered`: whole and without an index. `later_id` is what later pieces of a call carry for an id.
    `counts` is the form of its usage, `fields` what it takes beside the shared protocol. `honours_forced` and
    `honours_none` are false where such a tool_choice is passed over, `one_call` is true where more than one call a
    turn has to be asked for.
    """

    name: str
    base: str
    models: tuple[str, ...]
    fields: frozenset[str] = frozenset()
    reasoning: str = "reasoning_content"
    returns: bool = False
    calls: str = "interleaved"
    later_id: str | None = None
    counts: str = "details"
    needs_key: bool = True
    keeps_alive: bool = False
    honours_forced: bool = True
    honours_none: bool = True
    one_call: bool = False


DEEPSEEK = Manners(
    "deepseek",
    "/v1",
    ("deepseek-flash", "deepseek-v4-flash", "deepseek-v4-pro"),
    frozenset({"thinking", "reasoning_effort"}),
    returns=True,
    counts="hit_and_miss",
    keeps_alive=True,
)
_QWEN_MODELS = ("qwen3.8-max", "qwen3.8-flash", "qwen3.7-max", "qwen3.5-plus", "qwen-max", "qwen-plus")
_QWEN_FIELDS = frozenset({"enable_thinking", "thinking_budget", "parallel_tool_calls"})
QWEN_THINKING = Manners("qwen_thinking", "/v1", _QWEN_MODELS, _QWEN_FIELDS, later_id="", one_call=True)
QWEN_INSTRUCT = Manners("qwen_instruct", "/v1", _QWEN_MODELS, _QWEN_FIELDS, later_id="", one_call=True)
OPENAI = Manners(
    "openai",
    "/v1",
    ("gpt-6-luna", "gpt-6-sol", "gpt-4.1"),
    frozenset({"reasoning_effort", "max_completion_tokens", "parallel_tool_calls"}),
    reasoning="",
)
OLLAMA = Manners(
    "ollama",
    "/v1",
    ("qwen3", "llama3.2"),
    frozenset({"reasoning_effort"}),
    reasoning="reasoning",
    calls="whole",
    needs_key=False,
    honours_forced=False,
    honours_none=False,
)
GEMINI = Manners(
    "gemini",
    "/v1beta/openai",
    ("gemini-3.8-flash", "gemini-2.5-flash"),
    frozenset({"reasoning_effort"}),
    reasoning="",
    calls="unnumbered",
)
LLAMA_CPP = Manners(
    "llama_cpp",
    "/v1",
    (),
    frozenset({"chat_template_kwargs", "parallel_tool_calls"}),
    later_id="repeated",
    needs_key=False,
    honours_forced=False,
    one_call=True,
)
MANNERS = {
    manners.name: manners for manners in (DEEPSEEK, QWEN_THINKING, QWEN_INSTRUCT, OPENAI, OLLAMA, GEMINI, LLAMA_CPP)
}


def setting_of(manners: Manners, address: str) -> str:
    """The address as the vendor's setting wants it."""
    return address if manners.name in ("ollama", "gemini") else address + manners.base


def is_thinking(body: dict[str, object], manners: Manners) -> bool:
    """Whether the model reasons before it answers this request."""
    match manners.name:
        case "deepseek":
            thinking = body.get("thinking")
            return not (isinstance(thinking, dict) and thinking.get("type") == "disabled")
        case "qwen_thinking" | "qwen_instruct":
            return body.get("enable_thinking", True) is True
        case "ollama":
            return body.get("reasoning_effort", "medium") != "none"
        case "llama_cpp":
            return True
    return False
