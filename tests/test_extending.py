"""What the guide promises: a tool is one file, a mode one row, and both answer through the runtime as any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

import chat.tools
from chat.profiles import PROFILES, Profile
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks
from tests.serving import served, vendor_settings

TOOL = '''
"""Counts letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput


@dataclass(frozen=True, slots=True)
class CountLetters:
    name: str = "count_letters"
    description: str = "Counts the letters of a word."
    parameters: dict[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    )
    examples: tuple[str, ...] = ("How long is this word?",)
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Count the letters of {arguments.get('word', '')}"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        return ToolOutput(f"{len(arguments['word'])} letters", "counted")


TOOL = CountLetters()
'''
SPELLING = Profile(
    name="spelling",
    title="Spelling",
    description="Counts before it answers",
    prompt="You know words.",
    max_turns=3,
    max_tool_calls=4,
    opening_tool="count_letters",
)


@pytest.fixture
def extended(
    database: object, anthropic_server: AnthropicFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A server with one more file beside the tools, and one more row among the modes."""
    (tmp_path / "count_letters.py").write_text(TOOL)
    monkeypatch.setattr(chat.tools, "__path__", [*chat.tools.__path__, str(tmp_path)])
    monkeypatch.setitem(PROFILES, SPELLING.name, SPELLING)
    with served(start=Runtime.start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url
    sys.modules.pop("chat.tools.count_letters")


def test_a_new_tool_and_a_new_mode_are_listed_and_answer(extended: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("Four."), calls(Call("count_letters", {"word": "Faust"})), says("Five letters."))
    with nothing_breaks(), by_key(extended) as alice:
        assert "count_letters" in [tool["name"] for tool in alice.get("/api/tools").json()["results"]]
        assert "spelling" in [mode["name"] for mode in alice.get("/api/modes").json()["results"]]
        frames = alice.events("How long is Faust?", mode="spelling")
    assert frames[-1].data["text"] == "Five letters."
    assert "Four" not in repr(frames)
    assert [frame.data["label"] for frame in of_type(frames, "tool_call_start")] == ["Count the letters of Faust"]
    assert frames[-1].data["receipt"]["credits"] == 5 + 2
