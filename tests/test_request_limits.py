"""Programs are told how many requests they have left, and refused by name when there are none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from klerai.accounts.errors import Unauthenticated
from klerai.accounts.keys import create_key
from klerai.accounts.logins import KeyLogin
from klerai.accounts.models import Person, RequestCount
from klerai.accounts.request_limits import count_request
from tests.people import bearer, key_text, make_alice, make_charlie, sign_in
from tests.plans import on_plan
from tests.serving import server_process
from tests.test_redis import redis as redis

DOOR = "/api/modes"
ASYNC_DOOR = "/api/runs/7b1c7c3e-7d0f-4b0f-9a55-0f6f4a1d2c3b"


def early_in_a_minute(*, seconds: float = 3) -> None:
    """Windows lie on the clock: what counts requests for so long must not begin at the end of one."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left + 0.1)


def test_every_answer_to_a_key_says_what_is_left_and_a_page_is_told_nothing() -> None:
    alice = make_alice()
    early_in_a_minute()
    program = Client(headers=bearer(key_text(alice)))
    for door, left in ((DOOR, 599), (ASYNC_DOOR, 598), ("/api/billing?x=1", 597)):
        answer = program.get(door)
        assert (answer["RateLimit-Limit"], answer["RateLimit-Remaining"]) == ("600", str(left))
        assert 1 <= int(answer["RateLimit-Reset"]) <= 60
        assert answer["RateLimit-Policy"] == '"key";q=600;w=60, "plan";q=20000;w=3600'
        assert answer["RateLimit"].startswith(f'"key";r={left};t=')
    assert "RateLimit" not in sign_in(alice).get(DOOR)
    assert "RateLimit" not in Client().get(DOOR)


@pytest.mark.parametrize("door", [DOOR, ASYNC_DOOR])
def test_one_request_too_many_is_refused_with_the_limit_named(door: str) -> None:
    alice = on_plan(make_alice(), key_requests_per_minute=3)
    early_in_a_minute()
    busy, other = Client(headers=bearer(key_text(alice))), Client(headers=bearer(key_text(alice)))
    assert all(busy.get(door).status_code != 429 for _ in range(3))
    answer = busy.get(door)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (429, "rate_limited")
    assert (error["limit"], error["used"], error["max"]) == ("key", 3, 3)
    wait = int(answer["Retry-After"])
    assert 1 <= wait <= 60
    assert abs((datetime.fromisoformat(error["resets_at"]) - timezone.now()).total_seconds() - wait) < 2
    assert error["message"] == f"3 requests a minute with this key; try again in {wait} s. Nothing was charged."
    assert answer["RateLimit-Remaining"] == "0"
    assert other.get(door).status_code != 429
    assert sign_in(alice).get(door).status_code != 429


def test_the_keys_of_a_person_share_what_their_plan_gives_an_hour() -> None:
    alice, charlie = (on_plan(make(), all_requests_per_hour=4) for make in (make_alice, make_charlie))
    if timezone.now().minute == 59:
        early_in_a_minute()
    keys = [Client(headers=bearer(key_text(alice))) for _ in range(2)]
    assert all(key.get(DOOR).status_code == 200 for key in keys for _ in range(2))
    refused = keys[0].get(DOOR).json()["error"]
    assert (refused["limit"], refused["max"]) == ("plan", 4)
    assert "an hour with all your keys" in refused["message"]
    assert Client(headers=bearer(key_text(charlie))).get(DOOR).status_code == 200


def test_a_plan_without_limits_has_none_and_a_wrong_key_counts_for_nobody() -> None:
    alice = on_plan(make_alice())
    text = key_text(alice)
    assert "RateLimit" not in Client(headers=bearer(text)).get(DOOR)
    assert Client(headers=bearer(text[:-1])).get(DOOR).status_code == 401
    assert not RequestCount.objects.filter(person=alice).exists()


def test_a_window_that_is_over_counts_no_more() -> None:
    alice = on_plan(make_alice(), key_requests_per_minute=1)
    early_in_a_minute()
    program = Client(headers=bearer(key_text(alice)))
    assert [program.get(DOOR).status_code for _ in range(2)] == [200, 429]
    RequestCount.objects.filter(person=alice).update(began_at=timezone.now() - timedelta(minutes=2))
    assert program.get(DOOR).status_code == 200


def test_who_leaves_between_the_key_and_the_count_is_nobody() -> None:
    alice = make_alice()
    login = KeyLogin(alice, create_key(alice)[0].pk, frozenset({"read"}))
    Person.objects.get(pk=alice.pk).delete()
    with pytest.raises(Unauthenticated):
        count_request(login, now=timezone.now())


def test_counting_is_one_statement() -> None:
    program = Client(headers=bearer(key_text(make_alice())))
    program.get(DOOR)
    with CaptureQueriesContext(connection) as made:
        assert program.get(DOOR).status_code == 200
    assert sum("accounts_requestcount" in query["sql"] for query in made) == 1


@contextmanager
def two_processes(folder: Path, **environment: str) -> Iterator[list[httpx.Client]]:
    with ExitStack() as stack:
        urls = [stack.enter_context(server_process(folder, name=name, **environment)).url for name in ("one", "two")]
        yield [stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=60)) for url in urls]


def accepted(doors: list[httpx.Client], key: str, requests: int) -> int:
    """How many of these requests, sent to both at once, are let through."""
    early_in_a_minute(seconds=20)

    def send(number: int) -> Any:
        return doors[number % len(doors)].get(DOOR, headers=bearer(key)).status_code

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(send, range(requests))).count(200)


@pytest.mark.thorough
@pytest.mark.redis
@pytest.mark.xdist_group("redis")
def test_two_processes_count_as_one_by_redis_and_by_the_database_when_it_dies(redis: Any, tmp_path: Path) -> None:
    process, address = redis
    alice = on_plan(make_alice(), key_requests_per_minute=25)
    with two_processes(tmp_path, REDIS_URL=address) as doors:
        assert accepted(doors, key_text(alice), 60) == 25
        assert not RequestCount.objects.filter(person=alice).exists()
        process.kill()
        process.wait()
        assert accepted(doors, key_text(alice), 60) == 25
        assert RequestCount.objects.filter(person=alice).exists()


def test_settings_name_the_limits_of_the_plan(settings: Settings) -> None:
    page = sign_in(make_alice()).get("/settings/").content.decode()
    assert "600 requests a minute with a key" in page
    assert "20,000 requests an hour with all your keys" in page
