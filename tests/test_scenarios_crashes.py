"""BT4 and kill -9: a process that stops or dies in mid-run leaves a run that ends once and costs nothing."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from chat.models import Run
from chat.sweeper import sweep
from tests.database import database_apart
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, logged, of_type, run_row, server_sent
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged, ended_once, left
from tests.serving import ServerProcess, run_command, server_process, vendor_environment, wait_until

pytestmark = pytest.mark.xdist_group("crashes")
LONG = " ".join(f"word{number}" for number in range(600))
ADD = calls(Call("calculator", {"expression": "17.5 % of 2,480"}))
LEASE = {"KLERAI_LEASE_SECONDS": "2"}


@dataclass(frozen=True, slots=True)
class Zombie:
    """A run of a process that was frozen, as it stood when others had ended it."""

    visitor: Visitor
    run_id: str
    frames: list[Frame]


@pytest.mark.thorough
@pytest.mark.scenario("BT4")
def test_a_process_that_comes_back_after_its_lease_writes_nothing_more(
    scenario: Scenario, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    count = scenario.size(full=50, normal=6, quick=3)
    anthropic_fake.script(says(LONG, each_ms=20), key="at length", forever=True)
    with ExitStack() as stack:
        server = stack.enter_context(server_process(tmp_path, **vendor_environment(anthropic_fake.url), **LEASE))
        visitors = [stack.enter_context(by_key(server.url)) for _ in range(count)]
        run_ids = [_set_going(visitor) for visitor in visitors]
        server.send(signal.SIGSTOP)
        wait_until(lambda: _swept(run_ids), what="the sweeper to end every run of the frozen process")
        zombies = [Zombie(visitor, run_id, logged(run_id)) for visitor, run_id in zip(visitors, run_ids, strict=True)]
        server.send(signal.SIGCONT)
        wait_until(lambda: _is_quiet(anthropic_fake, count), what="the process to give its runs up")
        again = visitors[0].answer("Hello?")

    rows = [run_row(zombie.run_id) for zombie in zombies]
    scenario.figures = {"events": sum(len(zombie.frames) for zombie in zombies)}
    scenario.must_be_zero(
        late_writes_accepted=sum(logged(zombie.run_id) != zombie.frames for zombie in zombies),
        not_interrupted=sum(row.state != "interrupted" for row in rows),
        not_ended_once=sum(ended_once(row)["code"] != "interrupted" for row in rows),
        charged=sum(charged(row) != 0 for row in rows),
        without_its_words=sum(not LONG.startswith(_kept(row)) or not _kept(row) for row in rows),
        not_usable_afterwards=int(not again["response"] or left(rows[0]) != 45),
    )


def _set_going(visitor: Visitor) -> str:
    """A run whose first words are out; nobody watches it any more."""
    run_id = str(uuid.uuid4())
    with visitor.asking("Tell me at length.", run_id=run_id) as frames:
        next(frame for frame in frames if frame.type == "content_chunk")
    return run_id


def _swept(run_ids: list[str]) -> bool:
    sweep()
    return not Run.objects.filter(run_id__in=run_ids, state__in=Run.LIVE).exists()


def _is_quiet(fake: AnthropicFake, count: int) -> bool:
    """Whether the process has closed its connections to the vendor, as it does when it learns that a run is lost."""
    return sum(seen["closed_early"] for seen in fake.requests()) >= count


def _kept(run: Run) -> str:
    return "".join(run.items.filter(kind="partial").values_list("content", flat=True))


@pytest.fixture(scope="module")
def environment(database: object, anthropic_server: AnthropicFake) -> Iterator[dict[str, str]]:
    """A product with a database of its own, whose processes die."""
    with database_apart() as address:
        yield {"DATABASE_URL": address, **vendor_environment(anthropic_server.url), **LEASE}


@pytest.fixture(scope="module")
def alice(environment: dict[str, str]) -> dict[str, str]:
    """The headers of somebody with a key, made by the commands."""
    email = "alice@example.org"
    for arguments in (("create_person", email, "--password", "copper-kettle-17"), ("create_api_key", email)):
        done = run_command(*arguments, **environment)
        assert done.returncode == 0, done.stderr
    return {"Authorization": f"Bearer {done.stdout.split()[-1]}"}


@contextmanager
def program(server: ServerProcess, headers: dict[str, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=headers, timeout=30, trust_env=False) as client:
        yield client


def balance(client: httpx.Client) -> dict[str, int]:
    found: dict[str, int] = client.get("/api/billing").json()["balance"]
    return found


def assert_sound(environment: dict[str, str], *commands: str) -> None:
    for command in commands:
        done = run_command(command, **environment)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_after_kill_9_in_mid_run_the_run_is_interrupted_and_everything_adds_up(
    environment: dict[str, str], alice: dict[str, str], anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    anthropic_fake.script(ADD, says(LONG, each_ms=20))
    run_id = str(uuid.uuid4())
    with server_process(tmp_path, name="first", **environment) as server:
        with program(server, alice) as client:
            before = balance(client)
            seen = _read_until_words(client, run_id)
        server.kill()
    with server_process(tmp_path, name="second", **environment) as server, program(server, alice) as client:
        wait_until(lambda: client.get(f"/api/runs/{run_id}").json()["state"] != "running", what="the sweeper")
        run = client.get(f"/api/runs/{run_id}").json()
        assert run["state"] == "interrupted"
        assert run["error"]["retryable"]
        assert (run["receipt"]["credits"], run["receipt"]["tools"][0]["name"]) == (0, "calculator")
        assert run["text"].startswith(_words(seen))
        assert balance(client) == before
        replayed = list(server_sent([client.get(f"/api/runs/{run_id}/events").content]))
        assert replayed[: len(seen)] == seen
        assert [frame.seq for frame in replayed] == list(range(1, run["last_seq"] + 1))
        assert (replayed[-1].type, replayed[-1].data["code"]) == ("error", "interrupted")
        assert of_type(replayed, "tool_call_result")[0].data["ok"]
        again = client.post("/api/chat", json={"message": "Hello?", "conversation_id": run["conversation_id"]})
        assert again.status_code == 200
    assert_sound(environment, "audit_ledger", "check_invariants")


@pytest.mark.thorough
def test_a_crash_around_the_beginning_and_the_end_charges_at_most_once(
    environment: dict[str, str], alice: dict[str, str], tmp_path: Path
) -> None:
    """Each server first ends the run of the one before it and then dies at a place of its own."""
    asked: tuple[str, dict[str, str], dict[str, int]] | None = None
    for place in ("after_hold", "runner_after_settle", "runner_after_commit", ""):
        failpoint = {"KLERAI_FAILPOINT": place} if place else {}
        with server_process(tmp_path, name=place or "last", **failpoint, **environment) as server:
            with program(server, alice) as client:
                if asked is not None:
                    _assert_outcome(client, *asked)
                if not place:
                    break
                body = {"message": "Hello?", "run_id": str(uuid.uuid4())}
                asked = (place, body, balance(client))
                with pytest.raises(httpx.HTTPError):
                    client.post("/api/chat", json=body)
            assert server.process.wait(10) == -signal.SIGKILL
    assert_sound(environment, "check_invariants")


def _assert_outcome(client: httpx.Client, place: str, body: dict[str, str], before: dict[str, int]) -> None:
    is_charged = place == "runner_after_commit"
    answer = client.post("/api/chat", json=body)
    assert answer.status_code == (200 if is_charged else 503), answer.text
    assert balance(client) == {**before, "daily": before["daily"] - (5 if is_charged else 0)}


def _read_until_words(client: httpx.Client, run_id: str) -> list[Frame]:
    seen: list[Frame] = []
    body = {"message": "Tell me at length.", "run_id": run_id}
    headers = {"Accept": "text/event-stream"}
    with client.stream("POST", "/api/chat", json=body, headers=headers) as response:
        for frame in server_sent(response.iter_raw()):
            seen.append(frame)
            if len(of_type(seen, "content_chunk")) == 5:
                return seen
    raise AssertionError("the run ended before it could be killed")


def _words(frames: list[Frame]) -> str:
    return "".join(frame.data["text"] for frame in of_type(frames, "content_chunk"))
