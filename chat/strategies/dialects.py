"""How each vendor departs from the protocol OpenAI set and they share: a row a vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Extras = Mapping[str, Any]
_NOTHING: Extras = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is said beside the shared protocol.

    `thinks` asks for reasoning where the card thinks, `holds_back` asks a card that thinks not to in this call, and
    `unasked` goes with every other card. `thinks_beside_tools` is false where reasoning and tools exclude each other.
    `returns_reasoning` names the field in which the reasoning of a tool turn has to come back. `limit` is the
    vendor's word for the most tokens of an answer; `parallel` says that several calls in one turn have to be asked for,
    `honours_none` that a model may be shown tools it must not call.
    """

    name: str
    thinks: Extras = field(default_factory=lambda: _NOTHING)
    holds_back: Extras = field(default_factory=lambda: _NOTHING)
    unasked: Extras = field(default_factory=lambda: _NOTHING)
    thinks_beside_tools: bool = True
    returns_reasoning: str = ""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    parallel: bool = False
    honours_none: bool = True


_DEEPSEEK_THINKS_NOT = {"thinking": {"type": "disabled"}}
_QWEN_THINKS = {"enable_thinking": True}
_QWEN_THINKS_NOT = {"enable_thinking": False}
_NO_EFFORT = {"reasoning_effort": "none"}

DEEPSEEK = Dialect(
    "deepseek",
    thinks={"thinking": {"type": "enabled"}},
    holds_back=_DEEPSEEK_THINKS_NOT,
    unasked=_DEEPSEEK_THINKS_NOT,  # it thinks unless it is told not to
    returns_reasoning="reasoning_content",
)
QWEN_THINKING = Dialect(
    "qwen_thinking", thinks=_QWEN_THINKS, holds_back=_QWEN_THINKS, unasked=_QWEN_THINKS, parallel=True
)
QWEN_INSTRUCT = Dialect(
    "qwen_instruct", thinks=_QWEN_THINKS_NOT, holds_back=_QWEN_THINKS_NOT, unasked=_QWEN_THINKS_NOT, parallel=True
)
OPENAI = Dialect(
    "openai",
    thinks={"reasoning_effort": "low"},
    holds_back=_NO_EFFORT,
    thinks_beside_tools=False,  # a 400 over chat completions, whatever the effort, unless it is none
    limit="max_completion_tokens",
)
OLLAMA = Dialect(
    "ollama",
    thinks={"reasoning_effort": "medium"},
    holds_back=_NO_EFFORT,
    returns_reasoning="reasoning",
    honours_none=False,
)
LLAMA_CPP = Dialect(
    "llama_cpp",
    thinks={"chat_template_kwargs": _QWEN_THINKS},
    holds_back={"chat_template_kwargs": _QWEN_THINKS_NOT},
    returns_reasoning="reasoning_content",
    parallel=True,
)
GEMINI = Dialect("gemini", thinks={"reasoning_effort": "low"})
