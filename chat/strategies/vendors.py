"""Whose models can answer: a row a vendor, and what the settings say of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chat.strategies import dialects
from chat.strategies.base import ModelStrategy
from chat.strategies.dialects import Dialect
from chat.strategies.patience import Patience
from klerai.env import BadSetting, Environment

Maker = Callable[[str, str, Patience], ModelStrategy]
OFFLINE = "offline"
VARIABLE = "KLERAI_STRATEGY"
ALIASES = {
    "deepseek_single": "deepseek",
    "qwen_single_thinking": "qwen_thinking",
    "qwen_single_instruct": "qwen_instruct",
}


@dataclass(frozen=True, slots=True)
class Vendor:
    """A strategy, what it is good for, the prefix of its settings, and what they are where nothing is set.

    `make` builds the strategy from a key, an address and its patience; `path` is added to the address where the setting
    has none. `honours_forced_tool` is what is believed of a model that has no card.
    """

    strategy: str
    title: str
    benefit: str
    prefix: str
    model: str
    base_url: str
    make: Maker
    path: str = ""
    needs_key: bool = True
    honours_forced_tool: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    """How a vendor is reached and which of its models is asked first. `is_set` if the operator named a way to it."""

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)
    is_set: bool = False


def _anthropic(api_key: str, base_url: str, patience: Patience) -> ModelStrategy:
    from chat.strategies.anthropic import Anthropic  # a heavy SDK: only where it is used

    return Anthropic(api_key=api_key or "not-needed", base_url=base_url, patience=patience)


def compatible(dialect: Dialect) -> Maker:
    """Builds the strategy that speaks OpenAI's protocol in this dialect."""

    def make(api_key: str, base_url: str, patience: Patience) -> ModelStrategy:
        from chat.strategies.openai_compatible import OpenAICompatible  # a heavy SDK: only where it is used

        return OpenAICompatible(dialect, api_key=api_key, base_url=base_url, patience=patience)

    return make


_DASHSCOPE = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
VENDORS = (
    Vendor(
        strategy="anthropic",
        title="Anthropic",
        benefit="Answers in full sentences by a Claude model.",
        prefix="ANTHROPIC",
        model="claude-haiku-5-5",
        base_url="https://api.anthropic.com",
        make=_anthropic,
    ),
    Vendor(
        strategy="deepseek",
        title="DeepSeek",
        benefit="Answers by a DeepSeek model, which thinks first with DEEPSEEK_MODEL=deepseek-reasoner.",
        prefix="DEEPSEEK",
        model="deepseek-flash",
        base_url="https://api.deepseek.com",
        make=compatible(dialects.DEEPSEEK),
    ),
    Vendor(
        strategy="qwen_thinking",
        title="Qwen, thinking",
        benefit="Answers by a Qwen model that thinks first and shows it.",
        prefix="QWEN",
        model="qwen3.8-max",
        base_url=_DASHSCOPE,
        make=compatible(dialects.QWEN_THINKING),
        honours_forced_tool=False,
    ),
    Vendor(
        strategy="qwen_instruct",
        title="Qwen, instruct",
        benefit="Answers by a Qwen model that answers at once.",
        prefix="QWEN",
        model="qwen3.8-flash",
        base_url=_DASHSCOPE,
        make=compatible(dialects.QWEN_INSTRUCT),
    ),
    Vendor(
        strategy="openai",
        title="OpenAI",
        benefit="Answers by a GPT model.",
        prefix="OPENAI",
        model="gpt-6-luna",
        base_url="https://api.openai.com/v1",
        make=compatible(dialects.OPENAI),
    ),
    Vendor(
        strategy="ollama",
        title="Ollama",
        benefit="Answers by a model of your own machine. OLLAMA_MODEL names one that was pulled.",
        prefix="OLLAMA",
        model="qwen3",
        base_url="http://127.0.0.1:11434",
        make=compatible(dialects.OLLAMA),
        path="/v1",
        needs_key=False,
        honours_forced_tool=False,
    ),
    Vendor(
        strategy="gemini",
        title="Gemini",
        benefit="Answers by a Gemini model.",
        prefix="GEMINI",
        model="gemini-3.8-flash",
        base_url="https://generativelanguage.googleapis.com",
        make=compatible(dialects.GEMINI),
        path="/v1beta/openai",
    ),
    Vendor(
        strategy="llama_cpp",
        title="llama.cpp",
        benefit="Answers by a server of your own that speaks OpenAI’s protocol.",
        prefix="LLAMA_CPP",
        model="default",
        base_url="http://127.0.0.1:8080/v1",
        make=compatible(dialects.LLAMA_CPP),
        needs_key=False,
        honours_forced_tool=False,
    ),
)
BY_STRATEGY = {vendor.strategy: vendor for vendor in VENDORS}

# What the vendors renamed: the model it is now, and whether it thinks.
RENAMED = {
    ("deepseek", "deepseek-chat"): ("deepseek-flash", "none"),
    ("deepseek", "deepseek-reasoner"): ("deepseek-flash", "enabled"),
}
_MODEL_NAME = re.compile(r"[!-~]{1,80}")


def model_access(env: Environment) -> dict[str, Access]:
    """What the settings say of every vendor, by strategy. Raises BadSetting."""
    return {vendor.strategy: _access(vendor, env) for vendor in VENDORS}


def chosen_strategy(env: Environment, access: Mapping[str, Access]) -> str:
    """KLERAI_STRATEGY without aliases. `auto` is the first vendor there is a way to, else the one without a model.

    Raises BadSetting when the vendor asked for needs a key and there is neither a key nor an address of one's own.
    """
    names = {name: name for name in ("auto", OFFLINE, *BY_STRATEGY)}
    choice = env.choice(VARIABLE, "auto", {**names, **ALIASES})
    if choice == "auto":
        return next((strategy for strategy, found in access.items() if found.is_set), OFFLINE)
    vendor = BY_STRATEGY.get(choice)
    if vendor is not None and vendor.needs_key and not access[choice].is_set:
        raise BadSetting(f"{vendor.prefix}_API_KEY", f"is missing, and {VARIABLE}={choice} needs it.")
    return choice


def model_name(env: Environment, variable: str, default: str = "") -> str:
    """The name of a model. Raises BadSetting for what can be none."""
    name = env.text(variable, default)
    if name and not _MODEL_NAME.fullmatch(name):
        raise BadSetting(variable, f"is {name[:100]!r}; a model's name has at most 80 characters and no space.")
    return name


def strategy_of(vendor: Vendor, access: Access, *, patience: Patience | None = None) -> ModelStrategy:
    """The strategy that asks this vendor."""
    address = access.base_url if access.base_url.endswith(vendor.path) else access.base_url + vendor.path
    return vendor.make(access.api_key, address, patience or Patience())


def _access(vendor: Vendor, env: Environment) -> Access:
    variable = f"{vendor.prefix}_API_KEY"
    key = env.secret(variable)
    if not key.isascii() or (key and not key.isprintable()):
        raise BadSetting(variable, "has characters in it that no key has.")
    own_address = env.url(f"{vendor.prefix}_BASE_URL")
    own_model = model_name(env, f"{vendor.prefix}_MODEL")
    return Access(
        own_model or vendor.model,
        own_address or vendor.base_url,
        key,
        is_set=bool(key or (own_address and not _is_for_vectors(vendor, env)) or (own_model and not vendor.needs_key)),
    )


def _is_for_vectors(vendor: Vendor, env: Environment) -> bool:
    """An address of Ollama that is set for the embedder says nothing of a model that could answer."""
    return vendor.strategy == "ollama" and env.text("KLERAI_EMBEDDER") == "ollama"
