"""BM1: many clients spend one purse while their processes are killed: never a credit too many, none lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest
from django.db import connection

from billing import audit, credits
from klerai.accounts.models import Person
from tests.credit_people import newcomer
from tests.harness.scenario import IS_FULL, IS_THOROUGH, Scenario
from tests.processes import REPOSITORY
from tests.serving import command_environment

pytestmark = pytest.mark.xdist_group("crashes")
PURSE, PROCESSES = 500, 4
_WHOLE = """
    SELECT sum(balance) FROM billing_account
    WHERE person_id = %s AND bucket = 'pack' AND kind IN ('wallet', 'held', 'spent')
"""


@dataclass(slots=True)
class Fire:
    """Processes that spend, some of which are killed and replaced by others."""

    person: Person
    holds_each: int
    clients_each: int
    stack: ExitStack
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)

    def start(self) -> None:
        """They spend from when the last of them is ready."""
        for _ in range(PROCESSES):
            self.running.append(self.stack.enter_context(_spending(self.person, self.holds_each, self.clients_each)))
        for process in self.running:
            _begin(process)

    def kill_one(self, number: int) -> None:
        victim = number % PROCESSES
        self.running[victim].kill()
        self.running[victim].wait()
        self.running[victim] = self.stack.enter_context(_spending(self.person, self.holds_each, self.clients_each))
        _begin(self.running[victim])

    def watch(self, seconds: float) -> None:
        """Look at the purse again and again."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.looks.append(_whole(self.person))

    def ends(self) -> list[dict[str, float]]:
        return [json.loads(process.communicate(timeout=600)[0].splitlines()[-1]) for process in self.running]


@pytest.mark.thorough
@pytest.mark.scenario("BM1")
def test_a_purse_is_spent_exactly_while_processes_die(scenario: Scenario) -> None:
    holds = scenario.size(full=10_000, normal=10_000, quick=400)
    kills, clients = (20 if IS_FULL else 5, 64) if IS_THOROUGH or IS_FULL else (1, 16)
    person = newcomer()
    credits.grant(person, amount=PURSE, reason="A pack")
    with ExitStack() as stack:
        fire = Fire(person, holds // PROCESSES, clients // PROCESSES, stack)
        fire.start()
        for number in range(kills):
            fire.watch(2 if kills > 1 and number else 0.2)
            fire.kill_one(number)
        ends = fire.ends()
    orphans = [
        row.run_id for row in credits.entries_of(person, credits.Wanted(kinds=["hold"]), limit=100_000) if row.run_id
    ]
    orphans = [run_id for run_id in orphans if credits.settlement_of(person, run_id=run_id) is None]
    for run_id in orphans:  # as the sweeper does with the runs of processes that are gone
        credits.release(person, run_id=run_id)

    balance = credits.balance_of(person)
    settled = sum(row.spent for row in credits.entries_of(person, credits.Wanted(kinds=["settle"]), limit=100_000))
    scenario.figures = {
        "kills": kills,
        "clients": clients,
        "settled": settled,
        "refused": sum(end.get("refused", 0) for end in ends),
        "orphan_holds": len(orphans),
        "left": balance.pack,
        "looks": len(fire.looks),
        "p95_hold_ms": max(end["p95_ms"] for end in ends),
    }
    scenario.must_be_zero(
        not_whole_at_some_instant=sum(look != PURSE for look in fire.looks),
        lost_or_made=PURSE - settled - balance.pack,
        still_held=balance.held,
        violations=sum(str(person.pk) in violation.what for violation in audit.violations()),
    )


@contextmanager
def _spending(person: Person, holds: int, clients: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.spending", str(person.pk), str(holds), str(clients)],
        cwd=REPOSITORY,
        env=command_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


def _whole(person: Person) -> int:
    """What is free, held and spent together, at one instant."""
    with connection.cursor() as cursor:
        cursor.execute(_WHOLE, [person.pk])
        return int(cursor.fetchone()[0])
