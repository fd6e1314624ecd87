"""One authentication for every door: async views, DRF and WebSockets let the same people in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.test import Client
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from pytest_django import Settings

from klerai.accounts.models import ApiKey
from klerai.body_limit import BodyLimit
from tests.people import (
    bearer,
    key_text,
    make_alice,
    make_charlie,
    sign_in,
    suspend,
)
from tests.probes import KeyList

ASYNC, DRF = "/api/probe/async", "/api/probe/drf"
DOORS = pytest.mark.parametrize("door", [ASYNC, DRF])
JSON = "application/json"

Send = Callable[[dict[str, Any]], Awaitable[None]]


@pytest.fixture(autouse=True)
def probes(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.probes"


def code(answer: HttpResponse) -> str:
    return str(json.loads(answer.content)["error"]["code"])


def csrf_token(client: Client) -> str:
    client.get("/accounts/login/")
    client.get("/accounts/password/change/")
    return str(client.cookies[settings.CSRF_COOKIE_NAME].value)


@DOORS
def test_a_session_and_a_key_both_lead_to_their_person(door: str) -> None:
    alice, charlie = make_alice(), make_charlie()
    assert sign_in(alice).get(door).json()["person"] == str(alice.pk)
    assert Client().get(door, headers=bearer(key_text(alice))).json()["person"] == str(alice.pk)
    assert Client().get(door, headers=bearer(key_text(charlie))).json()["person"] == str(charlie.pk)


@DOORS
def test_nobody_is_refused_with_one_body_whatever_they_sent(door: str) -> None:
    alice = make_alice()
    text = key_text(alice)
    prefix = text.rsplit("_", 1)[0][:15]
    wrong = ["", "kl_", "kl_x_y", "Basic abc", prefix + "_" + "A" * 43, text[:-1], text + "x", "Ω" * 20, "kl_" * 5000]
    bodies = {Client().get(door).content}
    for credential in wrong:
        answer = Client().get(door, headers={"Authorization": f"Bearer {credential}"})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
        bodies.add(answer.content)
    assert len(bodies) == 1
    assert code(Client().get(door)) == "unauthenticated"


@DOORS
def test_a_bad_key_never_falls_back_on_the_cookie(door: str) -> None:
    browser = sign_in(make_alice())
    assert browser.get(door).status_code == 200
    assert browser.get(door, headers=bearer("kl_wrong_wrong")).status_code == 401


@DOORS
def test_a_session_needs_its_csrf_token_to_change_things_and_a_key_needs_none(door: str) -> None:
    alice = make_alice()
    browser = sign_in(alice, enforce_csrf_checks=True)
    body = {"words": "hello"}
    for headers in ({}, {"X-CSRFToken": "x" * 32}, {"X-CSRFToken": "short"}):
        answer = browser.post(door, body, content_type=JSON, headers=headers)
        assert (answer.status_code, code(answer)) == (403, "forbidden")
    token = csrf_token(browser)
    answer = browser.post(door, body, content_type=JSON, headers={"X-CSRFToken": token})
    assert (answer.status_code, answer.json()["person"]) == (200, str(alice.pk))
    foreign = {"X-CSRFToken": token, "Origin": "https://evil.example"}
    assert browser.post(door, body, content_type=JSON, headers=foreign).status_code == 403

    program = Client(enforce_csrf_checks=True)
    assert program.post(door, body, content_type=JSON, headers=bearer(key_text(alice))).status_code == 200


@DOORS
def test_a_suspended_person_is_refused_on_the_next_request(door: str) -> None:
    alice, charlie = make_alice(), make_charlie()
    browser, text = sign_in(alice), key_text(alice)
    assert browser.get(door).status_code == Client().get(door, headers=bearer(text)).status_code == 200
    suspend(alice)
    assert browser.get(door).status_code == Client().get(door, headers=bearer(text)).status_code == 401
    assert sign_in(charlie).get(door).status_code == 200


@DOORS
def test_a_revoked_key_is_refused_on_the_next_request_and_others_are_not(door: str) -> None:
    alice = make_alice()
    revoked, kept = key_text(alice, "revoked"), key_text(alice, "kept")
    assert Client().get(door, headers=bearer(revoked)).status_code == 200
    ApiKey.objects.filter(person=alice, name="revoked").update(is_active=False)
    assert Client().get(door, headers=bearer(revoked)).status_code == 401
    assert Client().get(door, headers=bearer(kept)).status_code == 200


@DOORS
def test_a_session_ends_with_the_password_it_was_made_by(door: str) -> None:
    alice = make_alice()
    browser = sign_in(alice)
    alice.set_password("another-kettle-18")
    alice.save()
    assert browser.get(door).status_code == 401


def test_doors_take_the_methods_they_name() -> None:
    answer = sign_in(make_alice()).delete(ASYNC)
    assert (answer.status_code, code(answer), answer["Allow"]) == (405, "unsupported", "GET, POST")
    answer = sign_in(make_alice()).delete(DRF)
    assert (answer.status_code, code(answer)) == (405, "unsupported")


def test_an_api_error_keeps_its_code_details_and_headers() -> None:
    answer = sign_in(make_alice()).get("/api/probe/busy")
    assert (answer.status_code, answer["Retry-After"]) == (409, "3")
    assert answer.json() == {"error": {"code": "conversation_busy", "message": "Busy.", "run_id": "r1"}}


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"{", 400, "invalid"),
        (b"[1]", 400, "invalid"),
        (b'"text"', 400, "invalid"),
        (b" ", 400, "invalid"),
        (b'{"a": NaN}', 400, "invalid"),
        (b'{"a": "\xff"}', 400, "invalid"),
        (b"[" * 100_000, 400, "invalid"),
        (b'{"a": ' + b"1" * 5000 + b"}", 400, "invalid"),
        (b'{"a": "' + b"x" * 256_000 + b'"}', 413, "message_too_long"),
        (b'{"a": "' + b"x" * 3_000_000 + b'"}', 413, "message_too_long"),
    ],
)
def test_a_body_that_is_not_one_small_json_object_is_refused(body: bytes, status: int, expected: str) -> None:
    answer = Client().post(ASYNC, body, content_type=JSON, headers=bearer(key_text(make_alice())))
    assert (answer.status_code, code(answer)) == (status, expected)


def test_a_body_of_another_type_is_refused_and_a_good_one_arrives_whole() -> None:
    headers = bearer(key_text(make_alice()))
    assert Client().post(ASYNC, {"a": "1"}, headers=headers).status_code == 415
    good = {"a": "emoji 🙂, עברית", "b": {"c": [1, 2.5, None, True]}}
    assert Client().post(ASYNC, good, content_type=JSON, headers=headers).json()["body"] == good
    largest = b'{"a": "' + b"x" * (256_000 - 9) + b'"}'
    assert len(largest) == 256_000
    assert Client().post(ASYNC, largest, content_type=JSON, headers=headers).status_code == 200


def test_wrong_fields_are_named_with_their_place() -> None:
    answer = sign_in(make_alice()).post(DRF, {"words": "too long", "lines": [1, "x"]}, content_type=JSON)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "invalid")
    assert set(error["fields"]) == {"words", "lines.1"}
    answer = sign_in(make_alice()).post(DRF, b"{", content_type=JSON)
    assert (answer.status_code, code(answer)) == (400, "invalid")


def test_what_is_not_there_and_what_breaks_answers_json_under_the_api_only() -> None:
    browser = Client(raise_request_exception=False)
    assert code(browser.get("/api/nothing")) == code(browser.get("/v1/nothing")) == "not_found"
    assert browser.get("/api/nothing").content == browser.get("/v1/other/thing").content
    assert (browser.get("/api/probe/broken").status_code, code(browser.get("/api/probe/broken"))) == (500, "internal")
    page = browser.get("/nothing-here/")
    assert (page.status_code, page["Content-Type"].split(";")[0]) == (404, "text/html")


def test_lists_come_newest_first_a_page_at_a_time() -> None:
    alice, charlie = make_alice(), make_charlie()
    key_text(charlie, "not yours")
    for number in range(5):
        key_text(alice, f"key {number}")
    browser = sign_in(alice)
    seen, address = [], "/api/probe/keys?limit=2"
    while address:
        page = browser.get(address).json()
        assert set(page) == {"results", "next"}
        seen.append(page["results"])
        address = page["next"]
    assert seen == [["key 4", "key 3"], ["key 2", "key 1"], ["key 0"]]
    for query in ("limit=0", "limit=101", "limit=-1", "limit=x", "limit=٣", "cursor=nonsense", "limit=1e1"):
        answer = browser.get(f"/api/probe/keys?{query}")
        assert (answer.status_code, code(answer)) == (400, "invalid"), query


def upload(*, declared: int | None = None) -> ApplicationCommunicator:
    headers = [(b"host", b"testserver"), (b"content-type", b"application/json")]
    if declared is not None:
        headers.append((b"content-length", str(declared).encode()))
    scope = {"type": "http", "method": "POST", "path": ASYNC, "headers": headers, "query_string": b""}
    return ApplicationCommunicator(BodyLimit(get_asgi_application()), scope)


async def status_after(door: ApplicationCommunicator, *chunks: bytes, is_whole: bool) -> int:
    for place, chunk in enumerate(chunks):
        more = not is_whole or place < len(chunks) - 1
        await door.send_input({"type": "http.request", "body": chunk, "more_body": more})
    status = int((await door.receive_output(timeout=10))["status"])
    body = await door.receive_output(timeout=10)
    assert status != 413 or json.loads(body["body"])["error"]["code"] == "message_too_long"
    await door.wait(timeout=10)
    return status


async def test_a_body_over_the_limit_is_refused_while_it_arrives() -> None:
    chunk = b"x" * 64_000
    assert await status_after(upload(declared=256_001), is_whole=False) == 413
    assert await status_after(upload(), *[chunk] * 5, is_whole=False) == 413, "the rest was never sent"
    assert await status_after(upload(declared=10), *[chunk] * 5, is_whole=False) == 413
    assert await status_after(upload(), *[chunk] * 4, is_whole=True) == 401, "256,000 bytes are not over it"


def test_the_schema_names_both_ways_to_sign_in() -> None:
    patterns = [path("api/keys", KeyList.as_view())]
    schema = SchemaGenerator(patterns=patterns).get_schema(public=True)
    schemes = schema["components"]["securitySchemes"]
    assert (schemes["key"]["scheme"], schemes["session"]["in"]) == ("bearer", "cookie")
    assert schema["paths"]["/api/keys"]["get"]["security"] == [{"key": ["read"]}, {"session": []}]
