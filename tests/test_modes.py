"""The five modes on one loop: a model that knows no end is ended by the limits of its mode, at the right price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from django.test import override_settings

from chat.models import Run
from chat.profiles import PROFILES, Profile
from chat.wiring import Runtime
from klerai.accounts.models import Person
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Turn, calls, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, logged, of_type
from tests.harness.soundness import charged, ended_once, nothing_breaks
from tests.harness.tools import by_name, hangs, says_at_once, tool
from tests.serving import served, vendor_settings

SEARCH = Call("knowledge_base_search", {"query": "leave"})
SUM = Call("calculator", {"expression": "1 + 1"})
RESPOND = Call("generate_response", {"sources": [], "answer": "Enough."})
MODES = list(PROFILES)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model opens and closes in a mode."""

    opening: tuple[Turn, ...]
    closing: Turn


def manner_of(profile: Profile) -> Manner:
    opening = (calls(SEARCH),) if profile.opening_tool else ()
    return Manner(opening, calls(RESPOND) if profile.closing_tool else says("Enough."))


@pytest.fixture(scope="module")
def house(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    with served(start=Runtime.start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def rich() -> Person:
    """Somebody whose credits set no limit."""
    person = with_packs(500)
    person.ceiling_credits = 400
    person.save(update_fields=["ceiling_credits"])
    return person


@pytest.fixture
def alice(house: str) -> Iterator[Visitor]:
    with nothing_breaks(), by_key(house, rich()) as visitor:
        yield visitor


def asked(alice: Visitor, mode: str) -> tuple[list[Frame], Run]:
    """The events of a question and its row; one end, and money as the receipt says."""
    frames = alice.events("Go on and on.", mode=mode)
    run = Run.objects.get(person=alice.person)
    assert frames == logged(run.run_id)
    ended_once(run)
    assert alice.balance()["held"] == 0
    return frames, run


def test_the_limits_are_those_of_the_design(house: str) -> None:
    with by_key(house) as bob:
        modes = {mode["name"]: mode for mode in bob.get("/api/modes").json()["results"]}
    assert {name: (*mode["limits"].values(),) for name, mode in modes.items()} == {
        "assistant": (15, 45, 120),
        "grounded": (10, 20, 120),
        "quick": (6, 5, 60),
        "builder": (15, 45, 120),
        "research": (10, 30, 120),
    }
    assert all(mode["available"] for mode in modes.values())
    assert [PROFILES[name].window for name in MODES] == [20, 20, 10, 20, 20]


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_calls_as_long_as_it_may_answers_on_its_last_turn(
    alice: Visitor, anthropic_fake: AnthropicFake, mode: str
) -> None:
    profile, manner = PROFILES[mode], manner_of(PROFILES[mode])
    between = profile.max_turns - 1 - len(manner.opening)
    anthropic_fake.script(*manner.opening, *[calls(SUM)] * between, manner.closing)
    frames, run = asked(alice, mode)
    assert (frames[-1].type, frames[-1].data["text"]) == ("message_complete", "Enough.")
    assert frames[-1].data["receipt"]["turns"] == profile.max_turns
    assert charged(run) == 5 + 2 * (profile.max_turns - 1)
    choice = anthropic_fake.requests()[-1]["body"]["tool_choice"]
    assert choice == ({"type": "tool", "name": "generate_response"} if profile.closing_tool else {"type": "none"})


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", [SUM, Call("rm_rf", {"path": "/"})], ids=["a tool", "a tool nobody has"])
def test_a_model_that_never_stops_calling_ends_without_charge(
    alice: Visitor, anthropic_fake: AnthropicFake, mode: str, call: Call
) -> None:
    anthropic_fake.script(*manner_of(PROFILES[mode]).opening, calls(call), forever=True)
    frames, run = asked(alice, mode)
    assert frames[-1].type == "error"
    assert frames[-1].data["code"] in ("model_unavailable", "mandatory_tool_missing")
    assert "Nothing was charged" in frames[-1].data["message"]
    assert len(anthropic_fake.requests()) <= PROFILES[mode].max_turns
    assert (run.state, charged(run)) == ("failed", 0)


@pytest.mark.parametrize("mode", MODES)
def test_of_a_hundred_calls_at_once_as_many_run_as_the_mode_allows(
    alice: Visitor, anthropic_fake: AnthropicFake, mode: str
) -> None:
    profile, manner = PROFILES[mode], manner_of(PROFILES[mode])
    many = [Call("calculator", {"expression": f"{number} + 1"}) for number in range(100)]
    anthropic_fake.script(*manner.opening, calls(*many), manner.closing)
    frames, run = asked(alice, mode)
    assert frames[-1].data["text"] == "Enough."
    done = [frame for frame in of_type(frames, "tool_call_result") if frame.data["credits"]]
    assert len(done) == profile.max_tool_calls
    assert charged(run) == 5 + 2 * profile.max_tool_calls
    assert len(of_type(frames, "tool_call_start")) == len(of_type(frames, "tool_call_result"))


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_answers_with_nothing_ends_without_charge(
    alice: Visitor, anthropic_fake: AnthropicFake, mode: str
) -> None:
    anthropic_fake.script(*manner_of(PROFILES[mode]).opening, says(""), forever=True)
    frames, run = asked(alice, mode)
    assert (frames[-1].type, frames[-1].data["code"]) == ("error", "model_unavailable")
    assert (run.state, charged(run)) == ("failed", 0)


@pytest.mark.parametrize("mode", MODES)
def test_the_prompt_of_a_mode_is_the_same_for_every_question_and_names_its_own_tools(
    alice: Visitor, anthropic_fake: AnthropicFake, mode: str
) -> None:
    manner = manner_of(PROFILES[mode])
    anthropic_fake.script(*manner.opening, manner.closing)
    asked(alice, mode)
    body = anthropic_fake.requests()[0]["body"]
    offered = {one["name"] for one in body["tools"]}
    assert body["system"][0]["text"] == PROFILES[mode].prompt
    assert body["max_tokens"] == 4096
    assert ("generate_response" in offered) == (mode == "grounded")
    assert ("rag_search" in offered, "knowledge_base_search" in offered) == (mode == "research", mode != "research")


def test_nothing_in_the_prompt_of_research_says_when_to_stop() -> None:
    words = PROFILES["research"].prompt.lower()
    assert not any(word in words for word in ("stop", "finish", "enough", "turns", "at most", "done", "as soon as"))


@pytest.fixture(scope="module")
def hurried(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """Quick, with a twentieth of its time for tools."""

    async def start() -> Runtime:
        quick = replace(PROFILES["quick"], tool_seconds=0.5, all_tools_seconds=0.5)
        tools = by_name(tool("hangs", hangs()), tool("echo", says_at_once("Here.")))
        return await Runtime.start(tools=tools, profiles={**PROFILES, "quick": quick})

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def test_when_its_time_for_tools_is_used_up_quick_must_answer(hurried: str, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(Call("echo", {}), Call("hangs", {})), says("Enough."))
    with nothing_breaks(), by_key(hurried) as bob:
        frames, run = asked(bob, "quick")
    assert frames[-1].data["text"] == "Enough."
    assert charged(run) == 5 + 2
    assert anthropic_fake.requests()[-1]["body"]["tool_choice"] == {"type": "none"}
    assert frames[-1].data["receipt"]["timings_ms"]["total"] < 3_000
