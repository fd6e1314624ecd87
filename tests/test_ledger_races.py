"""Many at once: never a credit too many, never a deadlock, never two of what there is one of."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from billing import audit, credits
from billing.credits import Balance, Held, Settlement, Shortfall
from billing.errors import AlreadyReleased, AlreadySettled
from billing.models import Account
from billing.pricing import Line
from klerai.accounts.models import Person
from tests.credit_people import NOON, newcomer, verified, with_packs

THREADS = 16
Result = TypeVar("Result")


def at_once(ask: Callable[[int], Result]) -> list[Result]:
    """What each of the threads got, all having started together."""
    start = threading.Barrier(THREADS)

    def one(number: int) -> Result:
        start.wait()
        try:
            return ask(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def one_credit() -> list[Line]:
    return [Line("tool", "q1-t1", 1, 1, 1)]


@pytest.mark.thorough
@pytest.mark.scenario
def test_five_hundred_credits_are_spent_by_sixteen_threads_exactly_five_hundred_times() -> None:
    person = with_packs(500)

    def drain(number: int) -> Counter[str]:
        done: Counter[str] = Counter()
        while isinstance(credits.hold(person, run_id=(run_id := uuid.uuid4()), amount=1, now=NOON), Held):
            done["hold"] += 1
            if done["hold"] % 4 == number % 4:
                credits.release(person, run_id=run_id, now=NOON)
                done["release"] += 1
            else:
                credits.settle(person, run_id=run_id, lines=one_credit(), now=NOON)
                done["settle"] += 1
        done["refused"] += 1
        return done

    done = sum(at_once(drain), Counter())
    left = credits.balance_of(person, now=NOON)
    assert left.held == 0
    assert done["settle"] + left.pack == 500
    assert left.pack < THREADS  # a thread may be refused while others still hold what they then release
    assert done["hold"] == done["settle"] + done["release"]
    assert done["refused"] == THREADS
    assert audit.violations() == []


def test_the_last_credits_go_to_one_of_sixteen_questions() -> None:
    person = with_packs(5)
    answers = at_once(lambda _: credits.hold(person, run_id=uuid.uuid4(), amount=5, now=NOON))
    assert Counter(type(answer) for answer in answers) == {Held: 1, Shortfall: THREADS - 1}
    assert credits.balance_of(person, now=NOON).held == 5


def test_the_same_hold_sixteen_times_is_one_hold() -> None:
    person, run_id = with_packs(100), uuid.uuid4()
    answers = at_once(lambda _: credits.hold(person, run_id=run_id, amount=5, now=NOON))
    assert set(answers) == {Held(run_id, None, daily=0, pack=5, day=NOON.date())}
    assert credits.balance_of(person, now=NOON).held == 5


def test_the_same_settle_sixteen_times_charges_once() -> None:
    person, run_id = with_packs(100), uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=5, now=NOON)
    answers = at_once(lambda _: credits.settle(person, run_id=run_id, lines=one_credit(), now=NOON))
    assert set(answers) == {Settlement(credits=1, daily=0, pack=1, balance_after=99)}
    assert credits.balance_of(person, now=NOON).pack == 99


def test_settle_and_release_together_resolve_the_run_one_way() -> None:
    person, run_id = with_packs(100), uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=5, now=NOON)

    def end(number: int) -> str:
        try:
            if number % 2:
                credits.settle(person, run_id=run_id, lines=one_credit(), now=NOON)
                return "settle"
            credits.release(person, run_id=run_id, now=NOON)
            return "release"
        except (AlreadySettled, AlreadyReleased):
            return "refused"

    answers = Counter(at_once(end))
    assert answers["refused"] == THREADS // 2
    assert {answers["settle"], answers["release"]} == {0, THREADS // 2}
    assert credits.balance_of(person, now=NOON).available == (99 if answers["settle"] else 100)


def test_a_tool_held_while_its_run_is_settled_is_given_back_or_refused() -> None:
    for _ in range(10):
        person, run_id = with_packs(100), uuid.uuid4()
        credits.hold(person, run_id=run_id, amount=5, now=NOON)

        def act(number: int, person: Person = person, run_id: uuid.UUID = run_id) -> None:
            if number == 0:
                credits.settle(person, run_id=run_id, lines=one_credit(), now=NOON)
            else:
                with contextlib.suppress(AlreadySettled):
                    credits.hold(person, run_id=run_id, amount=2, ref=f"q1-t{number}", now=NOON)

        at_once(act)
        assert credits.held_for(run_id) == 0
        assert credits.balance_of(person, now=NOON) == Balance(daily=0, pack=99, held=0)


def test_the_first_look_by_sixteen_threads_opens_one_set_of_accounts_and_one_day() -> None:
    person = verified()
    answers = at_once(lambda _: credits.balance_of(person, now=NOON))
    assert {answer.daily for answer in answers} == {50}
    assert Account.objects.filter(person_id=person.id).count() == 10
    assert [row.kind for row in credits.entries_of(person)] == ["grant"]


def test_the_same_grant_sixteen_times_is_given_once() -> None:
    person, key = newcomer(), f"grant:pack:{uuid.uuid4()}"
    answers = at_once(lambda _: credits.grant(person, amount=500, reason="A pack", key=key, now=NOON))
    assert Counter(answer.is_new for answer in answers) == {True: 1, False: THREADS - 1}
    assert credits.balance_of(person, now=NOON).pack == 500
