"""A run in which the model makes calls that a test chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klerai.accounts.models import Person
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import by_key
from tests.harness.frames import Frame, logged, run_row
from tests.harness.soundness import charged, nothing_breaks


@dataclass(frozen=True, slots=True)
class Told:
    """A run in which the model made some calls: its events, its results as the model got them, and its receipt."""

    frames: list[Frame]
    results: list[dict[str, Any]]
    receipt: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """Each result stands under its ID, in call order."""
        contents = [result["content"] for result in self.results]
        marks = [f"[ID:q1-t{number}] " for number in range(1, len(contents) + 1)]
        assert all(content.startswith(mark) for content, mark in zip(contents, marks, strict=True))
        return [content.removeprefix(mark) for content, mark in zip(contents, marks, strict=True)]

    @property
    def items(self) -> list[tuple[str, int]]:
        return [(line["item"], line["credits"]) for line in self.receipt["lines"]]


def told(workshop: str, fake: AnthropicFake, *wanted: Call, person: Person | None = None, **body: Any) -> Told:
    """Have the model make these calls at once, for somebody new or for `person`, and then answer."""
    fake.script(calls(*wanted), says("Done."))
    with nothing_breaks(), by_key(workshop, person) as alice:
        frames = alice.events("Use your tools.", **body)
        assert frames[-1].type == "message_complete", frames[-1].data
        assert frames == logged(frames[-1].data["receipt"]["run_id"])
        run = run_row(frames[-1].data["receipt"]["run_id"])
        assert charged(run) == frames[-1].data["receipt"]["credits"]
    answered = fake.requests()[-1]["body"]["messages"][-1]["content"]
    results = [block for block in answered if block["type"] == "tool_result"]
    assert len(results) == len(wanted)
    return Told(frames, results, frames[-1].data["receipt"])
