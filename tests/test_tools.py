"""Tools that misbehave: the model is told in a sentence, the run goes on, and nothing leaks or is paid for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from chat.profiles import PROFILES, QUICK
from chat.tools.base import CORRECT, GO_ON, ToolFailure, ToolOutput
from chat.tools.calculator import TOOL as CALCULATOR
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Turn, calls, says
from tests.harness.calling import told
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks
from tests.harness.tools import by_name, hangs, raises, says_at_once, tool
from tests.serving import served, vendor_settings

SECRET = "sk-ant-api03-THIS-IS-A-SECRET-0123456789"
GUARDED = {
    "type": "object",
    "properties": {"words": {"type": "string"}, "unit": {"type": "string", "enum": ["metric", "Imperial"]}},
    "required": ["words"],
    "additionalProperties": False,
}


async def _fails(arguments: object) -> ToolFailure:
    return ToolFailure("Nothing was found for these words.", is_retryable=True)


async def _echoes(arguments: dict[str, Any]) -> ToolOutput:
    return ToolOutput(f"You sent {arguments}.", "echoed")


TOOLS = by_name(
    CALCULATOR,
    tool("raises", raises(RuntimeError(f"no access with {SECRET} at /srv/app/secrets.py"))),
    tool("hangs", hangs()),
    tool("huge", says_at_once("x" * 50_000_000)),
    tool("binary", says_at_once("a\x00b\ud800c\x07")),
    tool("fails", _fails),
    tool("echo", _echoes, parameters=GUARDED),
    tool("reads_docs", says_at_once("A page."), category="documentation"),
    tool("github_search", says_at_once("A repository."), category="github"),
)


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server with tools that misbehave, asked for by the fake vendor."""

    async def start() -> Runtime:
        hurried = replace(QUICK, tool_seconds=1, all_tools_seconds=1)
        return await Runtime.start(tools=TOOLS, profiles={**PROFILES, "quick": hurried})

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def test_a_tool_that_raises_is_told_in_a_fixed_sentence_without_what_it_said(
    workshop: str, anthropic_fake: AnthropicFake, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = told(workshop, anthropic_fake, Call("raises", {}))
    assert seen.texts == [f"raises broke. Go on without it.\n{GO_ON}"]
    assert seen.results[0]["is_error"]
    assert seen.items == [("base", 5), ("failed", 0)]
    assert SECRET not in repr(seen.frames)
    assert "secrets.py" not in repr(seen.frames)
    written = capfd.readouterr()
    assert SECRET not in written.out + written.err


def test_tools_that_hang_are_given_up_side_by_side_while_the_others_finish(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    wanted = (Call("hangs", {}), Call("calculator", {"expression": "1 + 1"}), Call("hangs", {}))
    seen = told(workshop, anthropic_fake, *wanted, mode="quick")
    given_up = f"hangs did not answer within 1 seconds.\n{GO_ON}"
    assert seen.texts == [given_up, "1 + 1 = 2", given_up]
    assert seen.items == [("base", 5), ("failed", 0), ("tool", 2), ("failed", 0)]
    durations = [frame.data["duration_ms"] for frame in of_type(seen.frames, "tool_call_result")]
    assert seen.receipt["timings_ms"]["total"] < sum(durations)


def test_a_result_of_fifty_megabytes_is_cut_and_says_by_how_much(workshop: str, anthropic_fake: AnthropicFake) -> None:
    seen = told(workshop, anthropic_fake, Call("huge", {}))
    assert len(seen.texts[0]) < 101_000
    assert seen.texts[0].endswith("[49,900,000 more characters were cut]")
    assert len(repr(seen.frames)) < 20_000


def test_a_result_that_is_no_text_loses_what_no_database_holds(workshop: str, anthropic_fake: AnthropicFake) -> None:
    assert told(workshop, anthropic_fake, Call("binary", {})).texts == ["ab?c\x07"]


def test_an_expected_failure_is_told_in_its_own_words_and_costs_nothing(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    seen = told(workshop, anthropic_fake, Call("fails", {}))
    assert seen.texts == [f"Nothing was found for these words.\n{CORRECT}"]
    assert seen.items == [("base", 5), ("failed", 0)]
    result = of_type(seen.frames, "tool_call_result")[0].data
    assert (result["ok"], result["credits"], result["error"]) == (False, 0, "Nothing was found for these words.")


def test_a_hundred_calls_at_once_run_as_far_as_the_ceiling_and_all_are_answered(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    seen = told(workshop, anthropic_fake, *[Call("calculator", {"expression": f"{n} + 1"}) for n in range(100)])
    assert [text for text in seen.texts if " = " in text] == [f"{n} + 1 = {n + 1}" for n in range(10)]
    assert seen.receipt["credits"] == 25
    assert {item for item, _ in seen.items} == {"base", "tool", "ceiling", "blocked"}
    assert len(of_type(seen.frames, "tool_call_start")) == len(of_type(seen.frames, "tool_call_result")) == 100


def test_results_go_back_in_the_order_of_the_calls(workshop: str, anthropic_fake: AnthropicFake) -> None:
    seen = told(workshop, anthropic_fake, *[Call("calculator", {"expression": f"{n} * 2"}) for n in (5, 3, 4)])
    assert seen.texts == ["5 * 2 = 10", "3 * 2 = 6", "4 * 2 = 8"]


def test_a_tool_nobody_knows_is_refused_with_the_names_there_are(workshop: str, anthropic_fake: AnthropicFake) -> None:
    seen = told(workshop, anthropic_fake, Call("rm_rf", {"path": "/"}))
    assert "there is no tool named 'rm_rf'" in seen.texts[0]
    assert "calculator" in seen.texts[0]
    assert seen.items == [("base", 5), ("blocked", 0)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "words is missing."),
        ({"words": 5}, "words must be string."),
        ({"words": "a", "unit": "kelvin"}, "unit must be one of"),
        ({"words": "a", "extra": 1}, "extra is not known."),
        ({"words": "a\x00b"}, "words contains control characters."),
        ({"words": "a\x1bb"}, "words contains control characters."),
        ({"words": "x" * 200_000}, "more than 100,000 characters"),
        ({"words": {"k\x00": 1}}, "words must be string."),
        ('{"words": "a"', "not a whole JSON object"),
        ("[1, 2]", "not a whole JSON object"),
        ("nonsense", "not a whole JSON object"),
        ('{"words": 123456789012345678901234567890}', "words must be string."),
        ('{"words": 1e999}', "words"),
    ],
    ids=range(13),
)
def test_arguments_that_do_not_fit_are_refused_with_what_to_change(
    workshop: str, anthropic_fake: AnthropicFake, arguments: dict[str, Any] | str, reason: str
) -> None:
    seen = told(workshop, anthropic_fake, Call("echo", arguments))
    assert reason in seen.texts[0] or "not a whole JSON object" in seen.texts[0]
    assert seen.results[0]["is_error"]
    assert seen.items == [("base", 5), ("blocked", 0)]


def test_arguments_nested_beyond_reason_are_refused_and_the_run_goes_on(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    deep = '{"words": ' + '{"k": ' * 200 + "1" + "}" * 200 + "}"
    seen = told(workshop, anthropic_fake, Call("echo", deep))
    assert seen.results[0]["is_error"]
    assert seen.items == [("base", 5), ("blocked", 0)]


def test_a_slip_of_case_in_an_enumerated_value_is_mended(workshop: str, anthropic_fake: AnthropicFake) -> None:
    seen = told(workshop, anthropic_fake, Call("echo", {"words": "a", "unit": "imperial"}))
    assert seen.texts == ["You sent {'words': 'a', 'unit': 'Imperial'}."]


def test_a_tool_that_is_called_wrongly_in_three_turns_running_is_not_to_be_called_again(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    wrong, right = Call("echo", {"words": 5}), Call("echo", {"words": "a"})
    turns = [(wrong, wrong, wrong), (wrong,), (right,), (wrong,), (wrong, Call("fails", {})), (wrong,), (right,)]
    anthropic_fake.script(*(calls(*turn) for turn in turns), says("Done."))
    with nothing_breaks(), by_key(workshop) as alice:
        receipt = alice.answer("Use your tools.")["receipt"]
    answered = [
        [block["content"] for block in seen["body"]["messages"][-1]["content"] if block["type"] == "tool_result"]
        for seen in anthropic_fake.requests()[1:]
    ]
    last = [turn for turn, texts in enumerate(answered, 1) if "Do not call echo again" in str(texts)]
    assert last == [6]
    assert "words must be string." in answered[5][0]
    assert answered[6] == ["[ID:q1-t10] You sent {'words': 'a'}."]
    assert [line["item"] for line in receipt["lines"]].count("tool") == 2


def test_secrets_in_arguments_are_masked_and_long_ones_cut_where_people_look(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    seen = told(workshop, anthropic_fake, Call("fails", {"api_key": SECRET, "note": SECRET, "long": "y" * 5_000}))
    shown = of_type(seen.frames, "tool_call_start")[0].data["arguments"]
    assert SECRET not in repr(seen.frames)
    assert len(shown["long"]) == 2_001


def test_documentation_is_paid_once_a_question_and_github_by_the_call(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    wanted = (Call("reads_docs", {}), Call("reads_docs", {}), Call("github_search", {}), Call("github_search", {}))
    seen = told(workshop, anthropic_fake, *wanted)
    assert seen.items == [("base", 5), ("documentation", 10), ("documentation", 0), ("github", 3), ("github", 3)]


def test_on_its_last_turn_the_model_may_call_nothing_so_that_it_ends_with_words(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(*[calls(Call("calculator", {"expression": "1 + 1"}))] * 5, says("Enough."))
    with nothing_breaks(), by_key(workshop) as alice:
        answer = alice.answer("Go on and on.", mode="quick")
    assert answer["response"] == "Enough."
    assert answer["receipt"]["turns"] == 6
    choices = [(seen["body"].get("tool_choice") or {}).get("type", "auto") for seen in anthropic_fake.requests()]
    assert choices[-1] == "none"


def test_a_model_that_calls_tools_it_may_not_call_ends_the_run_without_charge(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(Turn((Call("calculator", {"expression": "1 + 1"}),)), forever=True)
    with nothing_breaks(), by_key(workshop) as alice:
        error = alice.refused("Go on and on.", status=503, mode="quick")
        assert error["code"] == "model_unavailable"
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}
