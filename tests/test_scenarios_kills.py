"""BM4: kill -9 at every step of a run: it ends once, is paid for once or not at all, and the talk goes on."""

from __future__ import annotations

import signal
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pytest

from chat.models import Run
from klerai.accounts.models import Person
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Turn, says
from tests.harness.doors import by_key
from tests.harness.frames import logged, of_type, run_row
from tests.harness.nursery import Nursery, nursery
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, ended_once
from tests.harness.visits import key_headers
from tests.people import make_person
from tests.serving import vendor_environment, wait_until

pytestmark = pytest.mark.xdist_group("crashes")
AT_ONCE = 2
ADD = Call("calculator", {"expression": "17.5 % of 2,480"})
MULTIPLY = Call("calculator", {"expression": "12 * 12"})
ANSWER = " ".join(f"word{number}" for number in range(40))
PRICE = 5 + 2 * 2


@dataclass(frozen=True, slots=True)
class Step:
    """A place in a run where its process dies, and what is then left: "nothing", "interrupted" or "answered"."""

    failpoint: str
    leaves: str = "interrupted"


STEPS = (
    Step("before_hold", leaves="nothing"),
    Step("after_hold"),
    Step("before_write"),
    Step("after_write"),
    Step("before_model_call"),
    Step("after_piece"),
    Step("after_tool_hold"),
    Step("before_tool"),
    Step("after_tool"),
    Step("after_tool:2"),
    Step("before_model_call:2"),
    Step("after_piece:5"),
    Step("before_flush"),
    Step("runner_before_settle"),
    Step("runner_after_settle"),
    Step("runner_before_commit"),
    Step("runner_after_commit", leaves="answered"),
    Step("before_response", leaves="answered"),
)


@dataclass(frozen=True, slots=True)
class Killed:
    """A question whose server died at a step."""

    number: int
    step: Step
    person: Person
    headers: dict[str, str]
    body: dict[str, Any]
    exit_codes: list[int]

    @property
    def key(self) -> str:
        return f"[killed {self.number}]"

    @property
    def run(self) -> Run | None:
        return Run.objects.filter(run_id=self.body["run_id"]).first()


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What another process says of it: the same question again, the conversation, and the next question in it."""

    again: httpx.Response
    thread: dict[str, Any]
    onwards: httpx.Response


@pytest.mark.thorough
@pytest.mark.scenario("BM4")
def test_a_process_may_die_at_any_step_of_a_run(
    scenario: Scenario, vendor_server: str, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    count = scenario.size(full=12 * len(STEPS), normal=3 * len(STEPS), quick=4)
    steps = list(islice(cycle(scenario.random.sample(STEPS, len(STEPS))), count))
    killed = [_killed(number, step) for number, step in enumerate(steps)]
    turns = (Turn((Text("Let me see."), ADD, MULTIPLY), each_ms=2), says(ANSWER, each_ms=8))
    for one in killed:
        anthropic_fake.script(*turns, *turns, key=one.key)
    _kill_all(killed, anthropic_fake, tmp_path)
    asked = _asked(anthropic_fake)
    ids = [one.body["run_id"] for one in killed]
    wait_until(lambda: not Run.objects.filter(run_id__in=ids, state__in=Run.LIVE).exists(), what="the sweeper")
    runs = {one.number: one.run for one in killed}
    continued = sum((_asked(anthropic_fake) - asked).values())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        afterwards = list(pool.map(lambda one: _go_on(vendor_server, one), killed))

    ended = [run for run in runs.values() if run is not None]
    left = [_left(runs[one.number]) for one in killed]
    scenario.figures = {
        "steps": len({step.failpoint for step in steps}),
        "left": dict(Counter(left)),
        "model_calls": asked.total(),
        "tool_results_kept": sum(run.items.filter(kind="tool").count() for run in ended),
        "recovery_p95_s": _p95([(run.ended_at - run.lease_until).total_seconds() for run in ended if run.error]),
    }
    scenario.must_be_zero(
        not_killed=sum(one.exit_codes != [-signal.SIGKILL] for one in killed),
        left_otherwise=sum(one.step.leaves != found for one, found in zip(killed, left, strict=True)),
        ended_more_than_once=sum(ended_once(run)["receipt"] != run.receipt for run in ended),
        charged_otherwise=sum(charged(run) != (0 if run.error else PRICE) for run in ended),
        lost_tool_results=sum(not _keeps_its_tools(run) for run in ended),
        continued_elsewhere=continued,
        told_otherwise=sum(not _is_told(one, after) for one, after in zip(killed, afterwards, strict=True)),
        not_readable=sum(not _is_readable(one, after) for one, after in zip(killed, afterwards, strict=True)),
        not_usable=sum(after.onwards.status_code != 200 for after in afterwards),
    )


def _killed(number: int, step: Step) -> Killed:
    person = make_person()
    body = {"message": f"How much is it? [killed {number}]", "run_id": str(uuid.uuid4())}
    return Killed(number, step, person, key_headers(person), body, [])


def _kill_all(killed: Sequence[Killed], fake: AnthropicFake, folder: Path) -> None:
    """Each question to a server of its own that dies in it, a few servers at a time."""
    with ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as pool:
        free: SimpleQueue[Nursery] = SimpleQueue()
        for _ in range(AT_ONCE):
            environment = {**vendor_environment(fake.url), "KLERAI_LEASE_SECONDS": "2"}
            free.put(stack.enter_context(nursery(folder, **environment)))

        def kill(one: Killed) -> None:
            place = free.get()
            try:
                one.exit_codes.append(_ask_and_die(place, one))
            finally:
                free.put(place)

        list(pool.map(kill, killed))


def _ask_and_die(place: Nursery, one: Killed) -> int:
    with place.doomed(one.step.failpoint) as server:
        with httpx.Client(base_url=server.url, headers=one.headers, timeout=30, trust_env=False) as client:
            try:
                client.post("/api/chat", json=one.body)
            except httpx.TimeoutException:
                return server.end()
            except httpx.TransportError:
                return server.wait()
        return server.end()


def _asked(fake: AnthropicFake) -> Counter[str]:
    return Counter(seen["key"] for seen in fake.requests())


def _go_on(url: str, one: Killed) -> Afterwards:
    with by_key(url, one.person) as visitor:
        again = visitor.post("/api/chat", one.body)
        run = visitor.run(one.body["run_id"])
        thread = visitor.get(f"/api/conversations/{run['conversation_id']}").json()
        onwards = visitor.ask("And now?", conversation_id=run["conversation_id"])
        return Afterwards(again, thread, onwards)


def _left(run: Run | None) -> str:
    if run is None:
        return "nothing"
    return "answered" if run.state == Run.State.COMPLETED else str(run.state)


def _keeps_its_tools(run: Run) -> bool:
    """Every result somebody may have seen is still there, whole."""
    seen = [frame.data["id"] for frame in of_type(logged(run.run_id), "tool_call_result")]
    kept = run.items.filter(kind="tool", is_ok=True).exclude(content="").values_list("ref", flat=True)
    return sorted(seen) == sorted(kept) and (bool(run.error) or len(seen) == 2)


def _is_told(one: Killed, after: Afterwards) -> bool:
    """Whether the same body again gives the same run, or the answer if the first one was never taken in."""
    if one.step.leaves == "interrupted":
        error = after.again.json()["error"]
        return after.again.status_code == 503 and error["code"] == "interrupted" and error["retryable"]
    answer = after.again.json()
    return after.again.status_code == 200 and answer["response"] == ANSWER and answer["credits_used"] == PRICE


def _is_readable(one: Killed, after: Afterwards) -> bool:
    (message,) = after.thread["messages"]
    words = run_row(one.body["run_id"]).items.filter(kind__in=["partial", "response"]).values_list("content", flat=True)
    is_whole = message["text"] == ANSWER or one.step.leaves == "interrupted"
    return is_whole and message["message"] == one.body["message"] and message["text"] == "".join(words)


def _p95(seconds: list[float]) -> float:
    return round(sorted(seconds)[int(0.95 * (len(seconds) - 1))], 1) if seconds else 0
