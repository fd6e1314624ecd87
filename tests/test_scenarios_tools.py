"""BT2: whatever a tool does, the run goes on to its answer, is charged rightly, and nothing private gets out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest
from django.test import override_settings

from chat.profiles import PROFILES, QUICK
from chat.tools.base import ToolFailure, ToolOutput
from chat.tools.registry import discover
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.frames import Frame, logged, of_type, run_row
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, ended_once
from tests.harness.tools import Work, by_name, hangs, raises, says_at_once, tool
from tests.serving import served, vendor_settings

pytestmark = pytest.mark.xdist_group("workshop")
AT_ONCE = 3
SECRET = "sk-ant-api03-NOBODY-MAY-READ-THIS-0123456789"
HUGE = 50_000_000
GOOD = Call("calculator", {"expression": "17.5 % of 2,480"})
HOSTILE_WORDS = (
    "",
    "(" * 5_000,
    "9 ** 9 ** 9 ** 9",
    "1 / 0",
    "__import__('os').system('id')",
    "x" * 90_000,
    "\u0663 + \U0001f4a3",
    "\x00",
    "../../etc/passwd",
    "'; DROP TABLE chat_run; --",
)


def _gives(output: Any) -> Work:
    async def work(arguments: Mapping[str, Any]) -> Any:
        return output

    return work


def _chained() -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        try:
            raise PermissionError(f"/srv/{SECRET}")
        except PermissionError as error:
            raise RuntimeError(f"no access with {SECRET}") from error

    return work


def _decodes() -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(f"{SECRET} \xff".encode("latin-1").decode(), "decoded")

    return work


def _recurses() -> Work:
    def deeper(depth: int) -> int:
        return deeper(depth + 1)

    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(str(deeper(0)), "reached the ground")

    return work


def _cancels_itself() -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        raise asyncio.CancelledError(SECRET)

    return work


def _will_not_be_cancelled() -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)
        await asyncio.sleep(3_600)
        return ToolOutput(SECRET, "an hour late")

    return work


@dataclass(frozen=True, slots=True)
class Misdeed:
    """Something a tool does, and whether what it gives is a result all the same."""

    name: str
    work: Work
    is_result: bool = False


MISDEEDS = (
    Misdeed("raises", raises(RuntimeError(f"no access with {SECRET} at /srv/app/secrets.py"))),
    Misdeed("raises_from", _chained()),
    Misdeed("exits", raises(SystemExit(SECRET))),  # type: ignore[arg-type]  it is no Exception, which is the point
    Misdeed("cancels_itself", _cancels_itself()),
    Misdeed("recurses", _recurses()),
    Misdeed("hangs", hangs()),
    Misdeed("will_not_be_cancelled", _will_not_be_cancelled()),
    Misdeed("fails", _gives(ToolFailure("Nothing was found.", is_retryable=True))),
    Misdeed("huge", says_at_once("x" * HUGE, summary="y" * HUGE), is_result=True),
    Misdeed("huge_failure", _gives(ToolFailure("z" * HUGE, is_retryable=False))),
    Misdeed("invalid_utf8", _decodes()),
    Misdeed("surrogates", says_at_once(b"caf\xe9 \xff\xfe".decode("utf-8", "surrogateescape")), is_result=True),
    Misdeed("binary", says_at_once("PNG\r\n\x1a\n\x00\x00\x7f\ud800", summary="\x00\x1b[31m"), is_result=True),
    Misdeed("empty", says_at_once("", summary=""), is_result=True),
    Misdeed("gives_nothing", _gives(None)),
    Misdeed("gives_bytes", _gives(ToolOutput(SECRET.encode(), "bytes"))),  # type: ignore[arg-type]
)
PLACES: dict[str, Callable[[Call], tuple[tuple[Call, ...], ...]]] = {
    "alone": lambda bad: ((bad,),),
    "beside a good one": lambda bad: ((GOOD, bad, GOOD),),
    "after a good one": lambda bad: ((GOOD,), (bad,)),
    "again and again": lambda bad: ((bad,), (bad,), (bad,)),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run with a tool that misbehaves: what its person, the vendor and the database have of it."""

    misdeed: Misdeed
    frames: list[Frame]
    results: list[dict[str, Any]]
    page: str
    thread: str
    good: int
    bad: int


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server with tools that misbehave, beside all the real ones."""
    tools = {**discover(), **by_name(*(tool(misdeed.name, misdeed.work) for misdeed in MISDEEDS))}

    async def start() -> Runtime:
        hurried = replace(QUICK, tool_seconds=1, all_tools_seconds=None)
        return await Runtime.start(tools=tools, profiles={**PROFILES, "quick": hurried})

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


@pytest.mark.thorough
@pytest.mark.scenario("BT2")
def test_a_tool_that_misbehaves_in_any_way_and_place_is_told_briefly_and_the_run_goes_on(
    scenario: Scenario, workshop: str, anthropic_fake: AnthropicFake, capfd: pytest.CaptureFixture[str]
) -> None:
    places = scenario.size(full=len(PLACES), normal=len(PLACES), quick=1)
    chosen = scenario.random.sample(list(PLACES), places)
    cases = list(product(MISDEEDS, chosen))
    scenario.n = len(cases)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(lambda case: _misbehave(anthropic_fake, workshop, *case), cases))
    written = capfd.readouterr()
    told = [result for outcome in outcomes for result in outcome.results]

    scenario.figures = {
        "misdeeds": len(MISDEEDS),
        "places": places,
        "calls": len(told),
        "longest_result": max(len(result["content"]) for result in told),
    }
    scenario.must_be_zero(
        not_answered=sum(outcome.frames[-1].type != "message_complete" for outcome in outcomes),
        charged_otherwise=sum(not _is_charged_rightly(outcome) for outcome in outcomes),
        results_missing=sum(len(outcome.results) != outcome.good + outcome.bad for outcome in outcomes),
        results_too_long=sum(len(result["content"]) > 100_100 for result in told),
        failures_not_told_as_such=sum(not _is_told(outcome) for outcome in outcomes),
        leaks_to_people=sum(_leaks(repr(outcome.frames) + outcome.page + outcome.thread) for outcome in outcomes),
        leaks_to_the_model=sum(_leaks(str(result)) for result in told),
        leaks_to_the_log=int(SECRET in written.out + written.err),
    )


def _misbehave(fake: AnthropicFake, url: str, misdeed: Misdeed, place: str) -> Outcome:
    key = f"[{misdeed.name} {place}]"
    turns = PLACES[place](Call(misdeed.name, {}))
    fake.script(*(calls(*wanted) for wanted in turns), says("I made do."), key=key)
    with by_key(url) as alice, by_session(url, alice.person) as browser:
        frames = alice.events(f"Use your tools. {key}", mode="quick")
        conversation = frames[0].data["conversation_id"]
        thread = alice.get(f"/api/conversations/{conversation}").text
        page = browser.get(f"/chat/{conversation}/").text
    assert frames == logged(frames[-1].data["receipt"]["run_id"])
    wanted = [call for turn in turns for call in turn]
    bad = sum(call.name == misdeed.name for call in wanted)
    return Outcome(misdeed, frames, _told(fake, key), page, thread, good=len(wanted) - bad, bad=bad)


def _told(fake: AnthropicFake, key: str) -> list[dict[str, Any]]:
    """The results of every call as the model got them in its last turn, their content as one text."""
    messages = fake.requests(key)[-1]["body"]["messages"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return [
        {**block, "content": block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]}
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _is_charged_rightly(outcome: Outcome) -> bool:
    run = run_row(outcome.frames[-1].data["receipt"]["run_id"])
    paid = outcome.good + (outcome.bad if outcome.misdeed.is_result else 0)
    return charged(run) == 5 + 2 * paid and ended_once(run)["receipt"] == run.receipt


def _is_told(outcome: Outcome) -> bool:
    failed = sum(bool(result.get("is_error")) for result in outcome.results)
    shown = sum(not frame.data["ok"] for frame in of_type(outcome.frames, "tool_call_result"))
    return failed == shown == (0 if outcome.misdeed.is_result else outcome.bad)


def _leaks(text: str) -> bool:
    return any(private in text for private in (SECRET, "secrets.py", "Traceback", "/tests/"))


@pytest.mark.thorough
@pytest.mark.scenario("BT2 arguments")
def test_every_real_tool_bears_whatever_arguments_a_model_may_write(
    scenario: Scenario, workshop: str, anthropic_fake: AnthropicFake, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = [(name, words) for name in discover() for words in HOSTILE_WORDS]
    scenario.n = len(cases)
    with by_key(workshop) as alice:
        ends = [_bear(anthropic_fake, alice, name, number, words) for number, (name, words) in enumerate(cases)]
    written = capfd.readouterr()
    scenario.must_be_zero(
        not_answered=sum(frames[-1].type != "message_complete" for frames in ends),
        leaks=sum(_leaks(repr(frames)) for frames in ends),
        bugs=(written.out + written.err).count("tool_broke"),
    )


def _bear(fake: AnthropicFake, visitor: Visitor, name: str, number: int, words: str) -> list[Frame]:
    key = f"[bears {name} {number}]"
    properties = discover()[name].parameters.get("properties", {})
    arguments = {field: _hostile(words, schema) for field, schema in properties.items()}
    fake.script(calls(Call(name, arguments)), says("I made do."), key=key)
    with by_key(visitor.url) as alice:
        return alice.events(f"Use your tools. {key}", mode="quick")


def _hostile(words: str, schema: Mapping[str, Any]) -> object:
    match schema.get("type"):
        case "integer" | "number":
            return -(2**63) if len(words) % 2 else 10**15
        case "boolean":
            return True
        case "array":
            return [words] * 10
    return words


@pytest.mark.scenario("BT2 recursion")
def test_a_model_that_would_call_a_hundred_times_is_ended_with_words_within_its_limits(
    scenario: Scenario, workshop: str, anthropic_fake: AnthropicFake
) -> None:
    scenario.n = 100
    until_refused = [calls(GOOD)] * 11  # ten are paid for, the next one meets the ceiling; then none may be called
    anthropic_fake.script(*until_refused, says("Enough."), *[calls(GOOD)] * 89, key="[a hundred turns]")
    anthropic_fake.script(calls(*[GOOD] * 100), says("Enough."), key="[a hundred at once]")
    with by_key(workshop) as alice:
        one_by_one = alice.answer("Go on and on. [a hundred turns]", mode="assistant")
        at_once = alice.answer("Go on and on. [a hundred at once]", mode="assistant")
    receipts = [one_by_one["receipt"], at_once["receipt"]]
    keys = ("[a hundred turns]", "[a hundred at once]")
    scenario.figures = {"turns": [receipt["turns"] for receipt in receipts]}
    scenario.must_be_zero(
        without_words=sum(answer["response"] != "Enough." for answer in (one_by_one, at_once)),
        beyond_the_turns=sum(receipt["turns"] > PROFILES["assistant"].max_turns for receipt in receipts),
        offered_after_the_ceiling=sum(_last_choice(anthropic_fake, key) != "none" for key in keys),
        beyond_the_ceiling=sum(receipt["credits"] > 25 for receipt in receipts),
        charged_otherwise=sum(charged(run_row(receipt["run_id"])) != receipt["credits"] for receipt in receipts),
    )


def _last_choice(fake: AnthropicFake, key: str) -> str:
    return str((fake.requests(key)[-1]["body"].get("tool_choice") or {}).get("type"))
