"""A key does what its scopes say, at every door; the page makes it, shows a line that works, and revokes it."""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import subprocess

import httpx
import pytest
from django.core.management import call_command
from django.db import IntegrityError
from django.test import Client
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from klerai.accounts.keys import create_key, find_key
from klerai.accounts.models import ApiKey, Person
from tests.harness.doors import by_session
from tests.people import bearer, make_alice, make_charlie, sign_in

SCOPES = ("read", "chat", "billing")


def program(person: Person, *scopes: str) -> Client:
    return Client(headers=bearer(create_key(person, "tests", scopes)[1]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "path", "opens_to"),
    [
        ("get", "/api/conversations", {"read"}),
        ("get", "/api/knowledge-bases/default_kb/search?q=otters", {"read"}),
        ("post", "/api/conversations", {"chat"}),
        ("get", "/api/modes", {"read", "chat"}),
        ("get", "/api/tools", {"read", "chat"}),
        ("get", "/api/billing", {"billing"}),
        ("get", "/api/billing/ledger", {"billing"}),
        ("post", "/api/billing/checkout", {"billing"}),
    ],
)
def test_a_door_opens_to_its_scopes_and_to_every_session(method: str, path: str, opens_to: set[str]) -> None:
    alice = make_alice()
    for scope in SCOPES:
        answer = getattr(program(alice, scope), method)(path, {}, content_type="application/json")
        assert (answer.status_code == 403) == (scope not in opens_to), (scope, answer.content)
        if answer.status_code == 403:
            error = answer.json()["error"]
            assert error["code"] == "forbidden"
            assert all(f"“{each}”" in error["message"] for each in opens_to)
    assert getattr(sign_in(alice), method)(path, {}, content_type="application/json").status_code != 403


def test_a_key_for_looking_asks_nothing_and_one_for_asking_sees_what_it_asked(server: str) -> None:
    alice = make_alice()
    looking, asking = (bearer(create_key(alice, "k", [scope])[1]) for scope in ("read", "chat"))
    with httpx.Client(base_url=server, trust_env=False, timeout=60) as http:
        for door, body in (
            ("/api/chat", {"message": "1 + 1"}),
            ("/api/chat/query", {"query": "otters"}),
            ("/v1/chat/completions", {"model": "assistant", "messages": [{"role": "user", "content": "1 + 1"}]}),
        ):
            refused = http.post(door, json=body, headers=looking)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        run_id = http.post("/api/chat", json={"message": "What is 17.5 % of 2,480?"}, headers=asking).json()["run_id"]
        for headers in (looking, asking):
            assert http.get(f"/api/runs/{run_id}", headers=headers).json()["state"] == "completed"
            assert http.get("/v1/models", headers=headers).status_code == 200
        assert http.post(f"/api/runs/{run_id}/stop", headers=looking).status_code == 403
        assert http.get("/api/conversations", headers=asking).status_code == 403


def test_a_socket_opens_to_keys_that_may_ask(server: str) -> None:
    alice = make_alice()
    address = server.replace("http", "ws", 1) + "/ws/chat/"
    with connect(address, additional_headers=bearer(create_key(alice, "k", ["chat"])[1]), proxy=None):
        pass
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers=bearer(create_key(alice, "k", ["read", "billing"])[1]), proxy=None)
    assert refused.value.response.status_code == 403


def test_a_key_has_a_scope_and_only_those_there_are() -> None:
    key, _ = create_key(make_alice())
    assert key.scopes == list(SCOPES)
    for scopes in ([], ["admin"], ["read", "everything"]):
        with pytest.raises(IntegrityError):
            ApiKey.objects.filter(pk=key.pk).update(scopes=scopes)


def test_the_command_makes_keys_with_fewer_scopes() -> None:
    alice, out = make_alice(), io.StringIO()
    call_command("create_api_key", alice.email, "--scope", "read", "--scope", "billing", stdout=out)
    found = find_key(out.getvalue().splitlines()[-1])
    assert found is not None
    assert found.scopes == ["read", "billing"]


def made_on_the_page(there: httpx.Client, *scopes: str) -> str:
    answer = there.post("/settings/keys/", data={"name": "notebook", "scope": list(scopes)})
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize(
    ("scopes", "said"), [(SCOPES, "response"), (("read", "billing"), "results"), (("billing",), "balance")]
)
def test_the_line_on_the_page_works_as_it_stands(server: str, scopes: tuple[str, ...], said: str) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed, so the line on the page was not run")
    with by_session(server) as alice:
        page = made_on_the_page(alice.http, *scopes)
    found = re.search(r'id="new-key-line">(.*?)</code>', page)
    assert found
    line = html.unescape(found[1])
    assert line.startswith("curl ")
    ran = subprocess.run(["sh", "-c", f"{line} --silent --noproxy '*'"], capture_output=True, text=True, check=True)
    assert said in json.loads(ran.stdout), ran.stdout


def test_a_key_without_scopes_is_not_made_and_the_page_says_so(server: str) -> None:
    with by_session(server) as alice:
        answer = alice.http.post("/settings/keys/", data={"name": "notebook", "scope": "admin"})
        assert (answer.status_code, "Choose what the key may do" in answer.text) == (422, True)
        assert not ApiKey.objects.filter(person=alice.person).exists()


def test_revoking_asks_first_and_only_the_owner(server: str) -> None:
    with by_session(server) as alice, by_session(server, make_charlie()) as charlie:
        made_on_the_page(alice.http, "read")
        page = alice.get("/settings/").text
        found = re.search(r"/settings/keys/[0-9a-f-]+/revoke/", page)
        assert found
        assert "read" in page
        assert "not yet" in page
        question = alice.get(found[0])
        assert "Revoke this key?" in question.text
        assert "notebook" in question.text
        assert charlie.get(found[0]).status_code == charlie.http.post(found[0]).status_code == 404
        assert ApiKey.objects.get(person=alice.person).is_active
        assert alice.http.post(found[0]).status_code == 302
        assert not ApiKey.objects.get(person=alice.person).is_active
        assert alice.http.post(found[0]).status_code == 404
