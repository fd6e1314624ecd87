"""`manage.py ask` with every vendor: the same question, the same events, whoever answers."""

from __future__ import annotations

import pytest

from chat.models import Run
from tests.harness.frames import from_json, logged
from tests.harness.parties import Party, only
from tests.harness.parties import each_party as each_party
from tests.harness.parties import party as party
from tests.harness.soundness import charged, nothing_breaks
from tests.people import make_person
from tests.serving import run_command, vendor_environment

SUM = "What is 17.5 % of 2,480?"


@pytest.mark.thorough
@only("deepseek", "qwen_thinking", "openai", "ollama", "gemini")
def test_a_question_that_needs_a_tool_is_answered_with_the_events_of_the_contract(party: Party) -> None:
    person = make_person()
    environment = vendor_environment(party.setting, strategy=party.vendor.strategy)
    with nothing_breaks():
        done = run_command("ask", SUM, "--mode", "assistant", "--user", person.email, "--json", **environment)
        assert done.returncode == 0, done.stderr
        run = Run.objects.get(person=person)
        frames = [from_json(line) for line in done.stdout.splitlines()]
        assert frames == logged(run.run_id)
        types = [frame.type for frame in frames]
        order = ["run_started", "tool_call_start", "tool_call_result", "content_chunk", "message_complete"]
        assert [types.index(kind) for kind in order] == sorted(types.index(kind) for kind in order)
        thinks = party.vendor.strategy in ("qwen_thinking", "ollama")
        assert ("reasoning_chunk" in types) is thinks
        last = frames[-1].data
        assert last["text"] == "17.5 % of 2,480 = 434."
        assert (last["receipt"]["model"], last["receipt"]["credits"]) == (party.vendor.model, 7)
        assert last["receipt"]["tokens"]["input"] > 0
        assert last["receipt"]["cost_usd"] is not None
        assert charged(run) == 7
