"""Runs whose process is gone: ended once, by whoever comes first, and never while somebody still holds them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from billing import credits
from billing.models import Account
from chat.intake import accept
from chat.models import Run
from chat.questions import read_question
from chat.sweeper import sweep
from chat.wiring import Runtime
from klerai.accounts.models import Person
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.doors import by_key
from tests.harness.soundness import charged, ended_once, left, nothing_breaks
from tests.harness.tools import by_name, does, tool
from tests.people import make_person
from tests.serving import served, vendor_settings


def orphan(person: Person | None = None, *, lease_seconds: int = 30) -> Run:
    """A run that was taken in by a process that died right after."""
    person = person or make_person()
    question = read_question({"message": "Is anybody there?", "run_id": str(uuid.uuid4())})
    return accept(person, question, tools=frozenset(), lease_seconds=lease_seconds).run


def lapsed(person: Person | None = None) -> Run:
    run = orphan(person)
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    return run


def test_a_run_with_a_good_lease_is_left_alone() -> None:
    run = orphan()
    sweep()
    run.refresh_from_db()
    assert run.state == "running"
    assert left(run) == 45
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    sweep()


def test_a_run_whose_lease_has_lapsed_is_interrupted_and_costs_nothing() -> None:
    with nothing_breaks():
        run = lapsed()
        sweep()
        run.refresh_from_db()
        assert run.state == "interrupted"
        assert charged(run) == 0
        assert left(run) == 50
        assert ended_once(run)["code"] == "interrupted"


def test_sweeping_again_changes_nothing() -> None:
    run = lapsed()
    sweep()
    run.refresh_from_db()
    before = (run.ended_at, run.last_seq, run.receipt)
    sweep()
    run.refresh_from_db()
    assert (run.ended_at, run.last_seq, run.receipt) == before


@pytest.mark.thorough
def test_many_sweepers_at_once_end_each_run_once() -> None:
    with nothing_breaks():
        runs = [lapsed() for _ in range(10)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: _sweep_in_thread(), range(4)))
        for run in runs:
            run.refresh_from_db()
            assert run.state == "interrupted"
            assert charged(run) == 0
            ended_once(run)


def _sweep_in_thread() -> None:
    try:
        sweep()
    finally:
        connection.close()


@pytest.mark.thorough
def test_a_run_whose_end_cannot_be_written_is_left_to_the_sweeper_and_not_kept_alive(
    anthropic_fake: AnthropicFake,
) -> None:
    """A tool that takes the run's credits away makes the end impossible."""
    anthropic_fake.script(calls(Call("steal", {})), says("Done."))
    person, run_id = make_person(), str(uuid.uuid4())

    def steal() -> None:
        try:
            credits.release(person, run_id=Run.objects.get(run_id=run_id).pk)
        finally:
            connection.close()

    async def start() -> Runtime:
        return await Runtime.start(tools=by_name(tool("steal", does(steal))))

    briefly = override_settings(LEASE_SECONDS=1, **vendor_settings(anthropic_fake.url))
    with nothing_breaks(), served(start=start, within=briefly) as url, by_key(url, person) as alice:
        error = alice.refused("Go.", status=503, run_id=run_id)
        assert error["code"] == "interrupted"
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


def test_somebody_whose_credits_do_not_add_up_is_told_so_and_spends_nothing(server: str) -> None:
    with by_key(server) as alice:
        alice.answer("Count to 3.")
        Account.objects.filter(person_id=alice.person.pk).update(blocked_at=timezone.now())
        error = alice.refused("Count to 3.", status=403)
        assert error["code"] == "forbidden"
        assert "do not add up" in error["message"]
        assert alice.balance()["held"] == 0
        Account.objects.filter(person_id=alice.person.pk).update(blocked_at=None)
        assert alice.answer("Count to 3.")["credits_used"] == 5


def test_a_person_whose_runs_were_swept_can_ask_again() -> None:
    person = make_person()
    runs = [lapsed(person) for _ in range(3)]
    with pytest.raises(Exception, match="3 of your questions"):
        orphan(person)
    sweep()
    assert orphan(person).state == "running"
    Run.objects.filter(person=person).update(lease_until=timezone.now() - timedelta(seconds=1))
    sweep()
    assert {run.state for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {"interrupted"}
