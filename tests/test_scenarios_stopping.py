"""BT6: a deploy lets runs finish and ends the rest, and a person may stop a run after any event of it."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import override_settings

from chat.models import Run
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, logged, of_type, run_row
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, ended_once
from tests.serving import served, server_process, vendor_environment, vendor_settings, wait_until

pytestmark = pytest.mark.xdist_group("crashes")
AT_ONCE = 6
SHORT = " ".join(f"word{number}" for number in range(60))
LONG = " ".join(f"word{number}" for number in range(900))
TOOLS = calls(
    Call("calculator", {"expression": "17.5 % of 2,480"}), Call("calculator", {"expression": "12 * 12"}), each_ms=5
)


@pytest.mark.thorough
@pytest.mark.scenario("BT6")
def test_a_deploy_lets_runs_finish_for_a_while_and_ends_the_rest_as_interrupted(
    scenario: Scenario, vendor_server: str, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    count = scenario.size(full=100, normal=20, quick=6)
    anthropic_fake.script(says(SHORT, each_ms=15), key="[short]", forever=True)
    anthropic_fake.script(says(LONG, each_ms=60), key="[long]", forever=True)
    anthropic_fake.script(says("Here I am."), key="[afterwards]")
    environment = {**vendor_environment(anthropic_fake.url), "KLERAI_DRAIN_SECONDS": "5"}
    with ExitStack() as stack:
        server = stack.enter_context(server_process(tmp_path, **environment))
        visitors = [stack.enter_context(by_key(server.url)) for _ in range(count)]
        watching = [_watched(visitor, is_long=bool(number % 2)) for number, visitor in enumerate(visitors)]
        for one in watching:
            one.has_words.wait(30)
        server.send(signal.SIGTERM)
        signalled = time.monotonic()
        seen = [one.frames.result() for one in watching]
        exit_code = server.process.wait(60)
        took = time.monotonic() - signalled
        late = sum(_is_taken_in(visitor) for visitor in visitors[:1])

    rows = [run_row(one.run_id) for one in watching]
    due = ["interrupted" if one.is_long else "completed" for one in watching]
    with by_key(vendor_server, visitors[1].person) as visitor:
        again = visitor.ask("And now? [afterwards]", conversation_id=str(rows[1].conversation_id))
    scenario.figures = {"states": dict(Counter(row.state for row in rows)), "seconds_to_exit": round(took, 1)}
    scenario.must_be_zero(
        exit_code=exit_code,
        lost=sum(row.is_live for row in rows),
        ended_otherwise=sum(row.state != state for row, state in zip(rows, due, strict=True)),
        charged_otherwise=sum(charged(row) != (0 if row.error else 5) for row in rows),
        viewers_left_without_the_end=sum(
            frames != logged(one.run_id) for frames, one in zip(seen, watching, strict=True)
        ),
        without_their_words=sum(not _keeps_its_words(row) for row in rows),
        taken_in_late=late,
        not_usable_afterwards=int(again.status_code != 200),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that somebody reads over SSE, to its end."""

    run_id: str
    is_long: bool
    has_words: threading.Event
    frames: Future[list[Frame]]


def _watched(visitor: Visitor, *, is_long: bool) -> Watched:
    found = Watched(str(uuid.uuid4()), is_long, threading.Event(), Future())

    def read() -> None:
        seen: list[Frame] = []
        try:
            message = f"Tell me. [{'long' if is_long else 'short'}]"
            with visitor.asking(message, run_id=found.run_id) as frames:
                for frame in frames:
                    seen.append(frame)
                    if frame.type == "content_chunk":
                        found.has_words.set()
        finally:
            found.frames.set_result(seen)

    threading.Thread(target=read, name=f"viewer of {found.run_id}").start()
    return found


def _is_taken_in(visitor: Visitor) -> bool:
    try:
        return visitor.ask("Am I late?").status_code == 200
    except httpx.TransportError:
        return False


def _keeps_its_words(run: Run) -> bool:
    kept = "".join(run.items.filter(kind__in=["partial", "response"]).values_list("content", flat=True))
    return bool(kept) and LONG.startswith(kept) and (bool(run.error) or kept == SHORT)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that was to be stopped after one of its events, and when its stop was asked for."""

    run_id: str
    after: int
    frames: list[Frame]
    asked_at: float | None


@pytest.fixture(scope="module")
def other_server(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """Another process as far as runs go: it has a runner and a log of its own."""
    with served(within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


@pytest.mark.thorough
@pytest.mark.scenario("BT6 stop")
def test_a_run_stopped_after_any_of_its_events_ends_there_and_leaves_the_vendor(
    scenario: Scenario, vendor_server: str, other_server: str, anthropic_fake: AnthropicFake
) -> None:
    """Every second stop is pressed at a process that does not have the run."""
    whole = _stop_after(anthropic_fake, vendor_server, vendor_server, None)
    count = scenario.size(full=240, normal=48, quick=10)
    places = scenario.random.sample(range(1, len(whole.frames)), len(whole.frames) - 1)
    cases = [(places[number % len(places)], (vendor_server, other_server)[number % 2]) for number in range(count)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        stopped = list(pool.map(lambda case: _stop_after(anthropic_fake, vendor_server, case[1], case[0]), cases))
    wait_until(lambda: not anthropic_fake.stats()["open"], what="the vendor to be left")

    rows = [run_row(one.run_id) for one in stopped]
    closing = sorted(seconds for one in stopped for seconds in _seconds_to_close(one, anthropic_fake))
    pairs = list(zip(stopped, rows, strict=True))
    scenario.figures = {
        "events_of_a_run": len(whole.frames),
        "ends": dict(Counter(_end(row) for row in rows)),
        "calls_closed": len(closing),
        "stop_to_close_p95_s": round(closing[int(0.95 * (len(closing) - 1))], 3) if closing else None,
        "closed_within_2_s": sum(seconds <= 2 for seconds in closing),
    }
    scenario.must_be_zero(
        not_ended=sum(row.is_live for row in rows),
        ended_more_than_once=sum(ended_once(row)["receipt"] != row.receipt for row in rows),
        charged_otherwise=sum(charged(row) != (9 if _has_answer(one) else 0) for one, row in pairs),
        ended_otherwise=sum(not _is_its_end(one, row) for one, row in pairs),
        frames_differ=sum(one.frames != logged(one.run_id) for one in stopped),
        asked_again=sum(len(_requests(one, anthropic_fake)) > 2 for one in stopped),
        tool_results_lost=sum(
            len(of_type(one.frames, "tool_call_result")) != row.items.filter(kind="tool").count() for one, row in pairs
        ),
    )


def _stop_after(fake: AnthropicFake, url: str, stopper_url: str, after: int | None) -> Stopped:
    run_id = str(uuid.uuid4())
    fake.script(TOOLS, says(SHORT, each_ms=20), key=f"[{run_id}]")
    frames: list[Frame] = []
    asked_at: float | None = None
    with ExitStack() as stack:
        visitor = stack.enter_context(by_key(url))
        stopper = stack.enter_context(by_key(stopper_url, visitor.person))
        for frame in stack.enter_context(visitor.asking(f"Stop me. [{run_id}]", run_id=run_id)):
            frames.append(frame)
            if frame.seq == after and not frame.is_terminal:
                asked_at = time.monotonic()
                assert stopper.stop(run_id).status_code == 200
    return Stopped(run_id, after or 0, frames, asked_at)


def _end(run: Run) -> str:
    return f"{run.state}, {'charged' if charged(run) else 'free'}"


def _has_answer(one: Stopped) -> bool:
    """The first turn only calls tools: every word there is belongs to the answer."""
    return bool(of_type(one.frames, "content_chunk"))


def _is_its_end(one: Stopped, run: Run) -> bool:
    end = one.frames[-1]
    if not _has_answer(one):
        return (run.state, end.type, end.data.get("code")) == ("stopped", "error", "stopped")
    words = "".join(frame.data["text"] for frame in of_type(one.frames, "content_chunk"))
    is_whole = run.state == "completed" and words == SHORT
    is_part = run.state == "stopped" and bool(end.data.get("stopped")) and SHORT.startswith(words)
    return end.type == "message_complete" and end.data["text"] == words and (is_whole or is_part)


def _requests(one: Stopped, fake: AnthropicFake) -> Sequence[dict[str, Any]]:
    return fake.requests(f"[{one.run_id}]")


def _seconds_to_close(one: Stopped, fake: AnthropicFake) -> Iterator[float]:
    """How long after the stop the vendor saw a call's connection closed, by the machine's one monotonic clock."""
    for seen in _requests(one, fake):
        if seen["closed_early"] and one.asked_at is not None:
            yield max(0.0, seen["closed_at"] - one.asked_at)
