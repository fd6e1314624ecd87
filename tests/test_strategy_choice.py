"""Which strategy answers, and that every page says the same of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import says
from tests.harness.doors import by_session
from tests.serving import server_process

NO_MODEL = "No model is connected"


def test_a_base_url_alone_is_a_model_on_every_page(anthropic_fake: AnthropicFake, tmp_path: Path) -> None:
    anthropic_fake.script(says("Hello from the model."))
    environment = {"KLERAI_STRATEGY": "auto", "ANTHROPIC_BASE_URL": anthropic_fake.url}
    with server_process(tmp_path, **environment) as server, by_session(server.url) as alice:
        page, setup = alice.get("/").text, alice.get("/setup/").text
        answer = alice.answer("Hello?")
    assert answer["response"] == "Hello from the model."
    assert NO_MODEL not in page
    assert "Anthropic, claude-haiku-5-5." in setup


@pytest.mark.parametrize("strategy", ["auto", "offline"])
def test_without_a_model_every_page_says_so(strategy: str, tmp_path: Path) -> None:
    with server_process(tmp_path, KLERAI_STRATEGY=strategy) as server, by_session(server.url) as alice:
        page, setup = alice.get("/").text, alice.get("/setup/").text
        answer = alice.answer("What is 2 + 3?")
    assert "Answered without a model" in answer["response"]
    assert NO_MODEL in page
    assert "Offline: without a model key" in setup
