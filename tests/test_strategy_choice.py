"""Which strategy answers: by the settings, by the mode, by the cards; and that every page says the same of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from django.test import override_settings

from chat.cards import Spent, card_for, cards_for, cost_usd
from chat.messages import Usage
from chat.models import ModelCard
from chat.profiles import PROFILES, QUICK
from chat.strategies.vendors import BY_STRATEGY, VENDORS, Access, Vendor, chosen_strategy, model_access, model_name
from chat.wiring import Runtime
from klerai.env import BadSetting, Environment
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import fails, says
from tests.fakes.openai import CompatibleFake, running_compatible
from tests.harness.doors import by_key, by_session
from tests.harness.frames import run_row
from tests.serving import VENDOR_KEY, run_command, served, server_process, vendor_settings

NO_MODEL = "No model is connected"


@pytest.fixture(scope="module")
def deepseek() -> Iterator[CompatibleFake]:
    with running_compatible("deepseek") as fake:
        yield fake


def chosen(**values: str) -> str:
    env = Environment(values)
    return chosen_strategy(env, model_access(env))


# By the settings


@pytest.mark.parametrize(
    ("values", "strategy"),
    [
        ({}, "offline"),
        ({"ANTHROPIC_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, "anthropic"),
        ({"OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, "deepseek"),
        ({"GEMINI_API_KEY": "k", "QWEN_BASE_URL": "http://127.0.0.1:1/v1"}, "qwen_thinking"),
        ({"OPENAI_API_KEY": "k", "OLLAMA_MODEL": "llama3.2"}, "openai"),
        ({"GEMINI_API_KEY": "k"}, "gemini"),
        ({"OLLAMA_MODEL": "llama3.2"}, "ollama"),
        ({"OLLAMA_BASE_URL": "http://127.0.0.1:1"}, "ollama"),
        ({"OLLAMA_BASE_URL": "http://127.0.0.1:1", "KLERAI_EMBEDDER": "ollama"}, "offline"),
        ({"ANTHROPIC_API_KEY": "k", "KLERAI_STRATEGY": "offline"}, "offline"),
        ({"KLERAI_STRATEGY": "ollama"}, "ollama"),
        ({"KLERAI_STRATEGY": "deepseek_single", "DEEPSEEK_API_KEY": "k"}, "deepseek"),
        ({"KLERAI_STRATEGY": "qwen_single_thinking", "QWEN_API_KEY": "k"}, "qwen_thinking"),
        ({"KLERAI_STRATEGY": "qwen_single_instruct", "QWEN_API_KEY": "k"}, "qwen_instruct"),
    ],
)
def test_the_settings_choose_and_auto_takes_the_first_there_is_a_way_to(values: dict[str, str], strategy: str) -> None:
    assert chosen(**values) == strategy


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        ("KLERAI_STRATEGY", {"KLERAI_STRATEGY": "gpt"}),
        ("ANTHROPIC_API_KEY", {"KLERAI_STRATEGY": "anthropic"}),
        ("DEEPSEEK_API_KEY", {"KLERAI_STRATEGY": "deepseek_single"}),
        ("QWEN_API_KEY", {"KLERAI_STRATEGY": "qwen_thinking", "DEEPSEEK_API_KEY": "k"}),
        ("OPENAI_API_KEY", {"OPENAI_API_KEY": "ключ"}),
        ("OPENAI_MODEL", {"OPENAI_MODEL": "two words"}),
        ("QWEN_BASE_URL", {"QWEN_BASE_URL": "dashscope"}),
    ],
)
def test_nonsense_is_a_sentence_that_names_its_variable(variable: str, values: dict[str, str]) -> None:
    with pytest.raises(BadSetting, match=rf"^{variable} .*\.$"):
        chosen(**values)
    with pytest.raises(BadSetting, match=r"^SMALL_MODEL .*\.$"):
        model_name(Environment({"SMALL_MODEL": "x" * 81}), "SMALL_MODEL")


def test_nonsense_stops_the_start() -> None:
    done = run_command("check", KLERAI_STRATEGY="deepseek")
    assert done.returncode != 0
    assert "DEEPSEEK_API_KEY is missing, and KLERAI_STRATEGY=deepseek needs it." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_a_base_url_alone_is_a_model_on_every_page(anthropic_fake: AnthropicFake, tmp_path: Path) -> None:
    anthropic_fake.script(says("Hello from the model."))
    environment = {"KLERAI_STRATEGY": "auto", "ANTHROPIC_BASE_URL": anthropic_fake.url}
    with server_process(tmp_path, **environment) as server, by_session(server.url) as alice:
        page, setup = alice.get("/").text, alice.get("/setup/").text
        answer = alice.answer("Hello?")
    assert answer["response"] == "Hello from the model."
    assert NO_MODEL not in page
    assert "Anthropic, claude-haiku-5-5." in setup


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["auto", "offline"])
def test_without_a_model_every_page_says_so(strategy: str, tmp_path: Path) -> None:
    with server_process(tmp_path, KLERAI_STRATEGY=strategy) as server, by_session(server.url) as alice:
        page, setup = alice.get("/").text, alice.get("/setup/").text
        answer = alice.answer("What is 2 + 3?")
    assert "Answered without a model" in answer["response"]
    assert NO_MODEL in page
    assert "Offline: without a model key" in setup


# By the mode


@contextmanager
def with_both(anthropic: AnthropicFake, deepseek: CompatibleFake) -> Iterator[None]:
    """Anthropic answers, and there is a way to DeepSeek too."""
    deepseek.reset()
    access = {
        **vendor_settings(anthropic.url)["MODEL_ACCESS"],
        "deepseek": Access(BY_STRATEGY["deepseek"].model, deepseek.setting, VENDOR_KEY, is_set=True),
    }
    with override_settings(STRATEGY="anthropic", MODEL_ACCESS=access):
        yield


def test_a_mode_may_wish_for_another_vendor(anthropic_fake: AnthropicFake, deepseek: CompatibleFake) -> None:
    wishing = {**PROFILES, "quick": replace(QUICK, strategy="deepseek", model="deepseek-reasoner")}
    anthropic_fake.script(says("Here is Claude."))
    both = with_both(anthropic_fake, deepseek)
    with served(start=partial(Runtime.start, profiles=wishing), within=both) as url, by_key(url) as alice:
        quick, other = alice.answer("What is 2 + 3?", mode="quick"), alice.answer("Hello?")
    assert (quick["response"], other["response"]) == ("2 + 3 = 5.", "Here is Claude.")
    assert run_row(quick["run_id"]).model == "deepseek-flash"
    assert deepseek.requests()[0]["body"]["thinking"] == {"type": "enabled"}


def test_a_wish_for_a_vendor_that_is_not_set_up_is_not_granted(anthropic_fake: AnthropicFake) -> None:
    wishing = {**PROFILES, "quick": replace(QUICK, strategy="openai")}
    anthropic_fake.script(says("Here is Claude."))
    alone = override_settings(**vendor_settings(anthropic_fake.url))
    with served(start=partial(Runtime.start, profiles=wishing), within=alone) as url, by_key(url) as alice:
        assert alice.answer("Hello?", mode="quick")["response"] == "Here is Claude."


# By the cards


def test_another_vendors_card_stands_in_only_where_an_operator_lets_it(
    anthropic_fake: AnthropicFake, deepseek: CompatibleFake
) -> None:
    anthropic_fake.script(fails(404), forever=True)
    card = ModelCard.objects.filter(strategy="deepseek", model="deepseek-flash")
    with served(within=with_both(anthropic_fake, deepseek)) as url, by_key(url) as alice:
        alice.refused("What is 2 + 3?", status=503)
    assert deepseek.requests() == []
    card.update(stands_in_anywhere=True, rank=0)
    try:
        with served(within=with_both(anthropic_fake, deepseek)) as url, by_key(url) as alice:
            answer = alice.answer("What is 2 + 3?")
    finally:
        card.update(stands_in_anywhere=False, rank=1)
    assert answer["response"] == "2 + 3 = 5."
    assert run_row(answer["run_id"]).model == "deepseek-flash"


def test_a_card_that_stands_in_anywhere_does_not_where_there_is_no_way_to_it() -> None:
    card = ModelCard.objects.filter(strategy="gemini")
    card.update(stands_in_anywhere=True, rank=0)
    try:
        assert {found.strategy for found in cards_for("deepseek", "deepseek-flash")} == {"deepseek"}
        assert cards_for("deepseek", "deepseek-flash", reachable={"gemini"})[1].strategy == "gemini"
    finally:
        card.update(stands_in_anywhere=False, rank=None)


def test_names_that_vendors_retired_are_the_models_they_became() -> None:
    chat, reasoner = card_for("deepseek", "deepseek-chat"), card_for("deepseek", "deepseek-reasoner")
    assert (chat.model, chat.thinking) == ("deepseek-flash", "none")
    assert (reasoner.model, reasoner.thinking) == ("deepseek-flash", "enabled")
    assert [found.model for found in cards_for("deepseek", "deepseek-chat")] == ["deepseek-flash", "deepseek-v4-pro"]


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.strategy)
def test_every_vendors_first_model_has_a_card_and_a_price(vendor: Vendor) -> None:
    assert ModelCard.objects.filter(strategy=vendor.strategy, model=vendor.model).exists()
    calls = [Spent(vendor.strategy, vendor.model, Usage(100_000, 1000, cached=10))]
    assert cost_usd(calls, on=date(2026, 11, 21)) is not None


def test_a_price_is_that_of_its_day() -> None:
    calls = [Spent("gemini", "gemini-3.8-flash", Usage(1_000_000, 0))]
    assert cost_usd(calls, on=date(2026, 12, 31)) == Decimal("0.75")
    assert cost_usd(calls, on=date(2027, 1, 1)) == Decimal("1.50")


@pytest.mark.parametrize(
    ("strategy", "name", "honours"),
    [("qwen_thinking", "qwen-max", False), ("qwen_instruct", "qwen-plus", True), ("ollama", "something-new", False)],
)
def test_a_model_without_a_price_can_be_used_and_its_cost_is_unknown(strategy: str, name: str, honours: bool) -> None:
    card = card_for(strategy, name)
    assert (card.model, card.honours_forced_tool) == (name, honours)
    assert cost_usd([Spent(strategy, name, Usage(1, 1))], on=date(2026, 11, 21)) is None


def test_the_set_up_page_names_every_vendor_and_what_would_connect_it(server: str) -> None:
    with by_session(server) as alice:
        shown = alice.get("/setup/").text
    for vendor in VENDORS:
        assert vendor.title in shown
        assert f"{vendor.prefix}_{'API_KEY' if vendor.needs_key else 'BASE_URL'}" in shown
