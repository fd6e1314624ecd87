"""BT1: whatever the vendor does, and in whichever turn, the run ends, nothing is held, and what was said is kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product as pairs
from typing import Any

import pytest

from chat.cards import card_for
from chat.models import Item
from chat.orchestrator import Route
from chat.strategies.anthropic import Anthropic
from chat.strategies.patience import Patience
from chat.strategies.retrying import Backoff, Retrying
from chat.tools.calculator import TOOL as CALCULATOR
from chat.wiring import Runtime
from klerai.database import in_database
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Turn, calls, fails, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, last_turn, logged, of_type, run_row
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, ended_once, left
from tests.harness.tools import by_name, does, tool
from tests.harness.toxic import ToxicProxy, toxic_proxy
from tests.serving import VENDOR_KEY, served

pytestmark = pytest.mark.xdist_group("faults")
TURNS = (1, 2, 3)
AT_ONCE = 6
WORDS = "These words were said before the line broke off. " * 3
ADD = Call("calculator", {"expression": "17.5 % of 2,480"})
HASTY = Patience(connect_seconds=0.5, first_token_seconds=1.2, silence_seconds=1.2, pause_seconds=0)


@dataclass(frozen=True, slots=True)
class Fault:
    """A turn that goes wrong, how often it is asked for while it does, and whether words were seen by then."""

    name: str
    turn: Turn
    asked: int
    is_visible: bool = False


FAULTS = (
    Fault("no answer at all", Turn((Text(WORDS),), stall="headers"), asked=2),
    Fault("no first token", Turn((Text(WORDS),), stall="first_token"), asked=2),
    Fault("stall in mid-stream", says(WORDS, stall="middle"), asked=1, is_visible=True),
    Fault("429", fails(429), asked=3),
    Fault("429 with a wish", fails(429, retry_after="3600"), asked=3),
    Fault("500", fails(500), asked=3),
    Fault("529", fails(529), asked=3),
    Fault("400", fails(400), asked=1),
    Fault("cut in the head", says(WORDS, cut_at=40), asked=3),
    Fault("cut before the first word", says(WORDS, cut_at=500), asked=3),
    Fault("cut after words", says(WORDS, cut_at=1_500), asked=1, is_visible=True),
    Fault("closed in good order after words", says(WORDS, ends_at=1_500), asked=1, is_visible=True),
    Fault("overloaded in mid-stream", says(WORDS, error_after=6), asked=1, is_visible=True),
    Fault("overloaded before the first word", says(WORDS, error_after=0), asked=3),
    Fault("bad JSON", says(WORDS, opening='{"type":'), asked=3),
    Fault("an empty answer", Turn((Text(""),)), asked=3),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one run with one fault."""

    fault: Fault
    at: int
    asked: int
    run_id: str
    frames: list[Frame]
    key: str


@pytest.fixture(scope="module")
def line(anthropic_server: AnthropicFake) -> Iterator[ToxicProxy]:
    """What lies between the product and its vendor."""
    with toxic_proxy(anthropic_server.url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def hasty_server(database: object, line: ToxicProxy) -> Iterator[str]:
    """A server that waits for its vendor half a second, and has a tool that breaks the line."""
    tools = by_name(CALCULATOR, tool("jam", does(line.jam)))

    async def start() -> Runtime:
        card = await in_database(card_for, "anthropic", "claude-haiku-5-5")
        claude = Anthropic(api_key=VENDOR_KEY, base_url=line.url, patience=HASTY)
        route = Route(Retrying(claude, backoff=Backoff(first_seconds=0.02, cap_seconds=0.05)), card)
        return await Runtime.start(route=route, tools=tools)

    with served(start=start) as url:
        yield url


@pytest.mark.thorough
@pytest.mark.scenario("BT1")
def test_a_vendor_that_fails_in_any_turn_ends_the_run_and_costs_nothing(
    scenario: Scenario, hasty_server: str, anthropic_fake: AnthropicFake
) -> None:
    cases = list(pairs(FAULTS, TURNS))
    scenario.n = len(cases)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        people = [by_key(hasty_server) for _ in cases]
        ended = list(pool.map(lambda case: _break(anthropic_fake, case[1], *case[0]), zip(cases, people, strict=True)))
    for person in people:
        person.http.close()

    rows = [run_row(end.run_id) for end in ended]
    scenario.figures = {"faults": len(FAULTS), "model_calls": sum(end.asked for end in ended)}
    scenario.must_be_zero(
        not_terminal=sum(row.state != "failed" for row in rows),
        ended_more_than_once=sum(ended_once(row)["code"] != "model_unavailable" for row in rows),
        orphan_holds_and_charges=sum(charged(row) != 0 or left(row) != 50 for row in rows),
        asked_more_or_less_than_due=sum(end.asked != end.at - 1 + end.fault.asked for end in ended),
        lost_words=sum(not _keeps_its_words(end) for end in ended),
        lost_tool_results=sum(_results_kept(end) != end.at - 1 for end in ended),
        unspoken_retries=sum(_retries_told(end) != end.fault.asked - 1 for end in ended),
    )


def _break(fake: AnthropicFake, visitor: Visitor, fault: Fault, at: int) -> Ended:
    """Have a run whose turns before `at` are good and whose turn `at` goes wrong however often it is asked for."""
    key = f"[{fault.name} in turn {at}]"
    fake.script(*[calls(ADD)] * (at - 1), fault.turn, key=key, forever=True)
    frames = visitor.events(f"Please add. {key}")
    run_id = str(visitor.get("/api/conversations").json()["results"][0]["id"])
    thread = visitor.get(f"/api/conversations/{run_id}").json()
    return Ended(fault, at, len(fake.requests(key)), thread["messages"][0]["run_id"], frames, key)


def _keeps_its_words(end: Ended) -> bool:
    said = last_turn([frame for frame in end.frames if frame.data.get("turn") == end.at])
    kept = [item.content for item in run_row(end.run_id).items.filter(kind=Item.Kind.PARTIAL)]
    if not end.fault.is_visible:
        return said == "" and kept == []
    return 0 < len(said) < len(WORDS) and WORDS.startswith(said) and kept == [said]


def _results_kept(end: Ended) -> int:
    results = [frame.data for frame in of_type(end.frames, "tool_call_result")]
    items = run_row(end.run_id).items.filter(kind=Item.Kind.TOOL, is_ok=True, content__contains="434")
    return items.count() if all(result["ok"] and result["credits"] == 2 for result in results) else -1


def _retries_told(end: Ended) -> int:
    return sum(frame.data["phase"] == "retrying" for frame in of_type(end.frames, "status_update"))


@pytest.mark.thorough
@pytest.mark.scenario("BT1 passing")
def test_a_fault_that_passes_before_the_first_word_is_not_in_the_answer(
    scenario: Scenario, hasty_server: str, anthropic_fake: AnthropicFake
) -> None:
    cases = [(fault, at) for fault, at in pairs(FAULTS, TURNS) if fault.asked > 1]
    scenario.n = len(cases)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        people = [by_key(hasty_server) for _ in cases]
        answers = list(pool.map(lambda case: _mend(anthropic_fake, case[1], *case[0]), zip(cases, people, strict=True)))
    for person in people:
        person.http.close()
    due = [5 + 2 * (at - 1) for _, at in cases]
    scenario.must_be_zero(
        not_answered=sum(answer.get("response") != "It is 434." for answer in answers),
        charged_otherwise=sum(
            charged(run_row(answer["run_id"])) != credits for answer, credits in zip(answers, due, strict=True)
        ),
        asked_more_or_less_than_due=sum(
            len(anthropic_fake.requests(f"[{fault.name} once in turn {at}]")) != at + 1 for fault, at in cases
        ),
    )


def _mend(fake: AnthropicFake, visitor: Visitor, fault: Fault, at: int) -> dict[str, Any]:
    """Have a run whose turn `at` goes wrong once."""
    key = f"[{fault.name} once in turn {at}]"
    fake.script(*[calls(ADD)] * (at - 1), fault.turn, says("It is 434."), key=key)
    return visitor.answer(f"Please add. {key}")


@pytest.mark.thorough
@pytest.mark.parametrize("at", TURNS)
def test_a_vendor_that_cannot_be_reached_any_more_fails_the_run_and_costs_nothing(
    hasty_server: str, line: ToxicProxy, anthropic_fake: AnthropicFake, at: int
) -> None:
    key = f"[jammed in turn {at}]"
    anthropic_fake.script(*[calls(ADD)] * (at - 2), *[calls(Call("jam", {}))] * (at > 1), key=key)
    with by_key(hasty_server) as alice:
        if at == 1:
            line.jam()
        try:
            error = alice.refused(f"Please add. {key}", status=503)
        finally:
            line.unjam()
        assert error["code"] == "model_unavailable"
        assert error["retryable"]
        assert charged(run_row(error["run_id"])) == 0
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}
        assert len(anthropic_fake.requests(key)) == at - 1
        assert sum(frame.data.get("phase") == "retrying" for frame in logged(error["run_id"])) == 1


@pytest.mark.parametrize("at", TURNS)
def test_arguments_that_end_early_are_sent_back_to_the_model_and_cost_nothing(
    hasty_server: str, anthropic_fake: AnthropicFake, at: int
) -> None:
    key = f"[truncated in turn {at}]"
    broken = calls(Call("calculator", '{"expression": "17.5 % of'), stop_reason="max_tokens")
    anthropic_fake.script(*[calls(ADD)] * (at - 1), broken, says("I could not."), key=key)
    with by_key(hasty_server) as alice:
        answer = alice.answer(f"Please add. {key}")
    assert answer["response"] == "I could not."
    assert answer["credits_used"] == charged(run_row(answer["run_id"])) == 5 + 2 * (at - 1)
    assert answer["receipt"]["lines"][-1]["item"] == "blocked"
    told = anthropic_fake.requests(key)[-1]["body"]["messages"][-1]["content"][0]
    assert told["is_error"]
    assert "not a whole JSON object" in str(told["content"])
