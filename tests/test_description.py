"""The API's description is valid, whole, and true of who may do what; the page that shows it asks nobody else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from klerai.accounts.keys import create_key
from tests.harness.doors import by_key
from tests.people import bearer, make_alice

JSON = {"Accept": "application/vnd.oai.openapi+json"}
ITSELF = {"/api/schema/", "/api/docs/"}
CONVERTER = re.compile(r"<(?:\w+:)?(\w+)>")
SOMETHING = {"uuid": "0b9ce0f5-7cd1-4d4e-9f26-5a8e2fd8a001", None: "nothing"}
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def description(database: object) -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/schema/", headers=JSON).json()
    return found


def addresses(patterns: list[Any], before: str = "/") -> Iterator[str]:
    for pattern in patterns:
        here = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, here)
        elif isinstance(pattern, URLPattern):
            yield CONVERTER.sub(r"{\1}", here)


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, found in description["paths"].items():
        for method in METHODS & found.keys():
            yield path, method, found[method]


def test_the_description_is_valid_and_nothing_in_it_is_guessed(tmp_path: Path) -> None:
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(file))
    assert file.read_text().startswith("openapi: 3.1.0")


def test_every_address_for_programs_is_in_it_and_none_that_is_not_there(description: dict[str, Any]) -> None:
    there = set(addresses(get_resolver().url_patterns))
    programs = {path for path in there if path.startswith(("/api/", "/v1/"))} - ITSELF
    assert programs - description["paths"].keys() == set()
    assert description["paths"].keys() - there == set()


def test_every_operation_has_a_name_of_its_own_an_answer_and_its_refusals(description: dict[str, Any]) -> None:
    names = []
    tags = {tag["name"] for tag in description["tags"]}
    for path, method, said in operations(description):
        names.append(said["operationId"])
        assert set(said["tags"]) <= tags, path
        assert said["summary"], path
        answers = said["responses"]
        assert any(status.startswith("2") for status in answers), path
        assert said["description"], path
        needed = {"401", "403", "429"} if said["security"] else set()
        needed |= {"400", "413", "415"} if "requestBody" in said else set()
        needed |= {"404"} if "{" in path else set()
        assert needed <= answers.keys(), (method, path)
    assert len(names) == len(set(names))


def test_no_answer_is_an_object_of_anything(description: dict[str, Any]) -> None:
    for path, _, said in operations(description):
        for status, answer in said["responses"].items():
            shape = answer.get("content", {}).get("application/json", {}).get("schema")
            assert shape is None or "$ref" in shape or shape.get("properties"), (path, status)


def test_a_scope_opens_what_the_description_says_and_nothing_else(server: str, description: dict[str, Any]) -> None:
    alice = make_alice()
    with httpx.Client(base_url=server, trust_env=False, timeout=60) as http:
        for scope in ("read", "chat", "billing"):
            headers = bearer(create_key(alice, scope, [scope])[1])
            for path, method, said in operations(description):
                if not said["security"]:
                    continue
                needed = {each for entry in said["security"] for each in entry.get("key", ())}
                assert needed, path
                status = http.request(method, with_something(path, said), headers=headers, json={}).status_code
                assert (status == 403) == (scope not in needed), (method, path, scope, status)
                assert str(status) in said["responses"], (method, path, scope, status)


def with_something(path: str, said: dict[str, Any]) -> str:
    """The address with values of the right kind, of which none is anybody's."""
    for parameter in said.get("parameters", ()):
        if parameter["in"] == "path":
            kind = parameter["schema"].get("format")
            path = path.replace(f"{{{parameter['name']}}}", SOMETHING[kind])
    return path


def test_nobody_gets_in_where_the_description_asks_for_a_key(server: str, description: dict[str, Any]) -> None:
    with httpx.Client(base_url=server, trust_env=False, timeout=60) as http:
        for path, method, said in operations(description):
            status = http.request(method, with_something(path, said), json={}).status_code
            assert (status == 401) == bool(said["security"]), (method, path, status)


def test_the_limits_of_the_description_are_those_of_the_doors(server: str, description: dict[str, Any]) -> None:
    shape = description["paths"]["/api/chat"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    most = shape["properties"]["message"]["maxLength"]
    with by_key(server) as alice:
        assert alice.refused("x" * (most + 1), status=413)["max"] == most
        assert alice.ask("2 + 2 " + " " * 10).status_code == 200


def test_the_page_loads_from_this_server_alone() -> None:
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    html = page.content.decode()
    sources = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert not [source for source in sources if not source.startswith(("/", "#"))]
    assert not re.search(r"<script(?![^>]* src=)[^>]*>", html)
    assert "<style" not in html
    policy = page["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "img-src 'self' data:" in policy
    assert "data:" not in Client().get("/accounts/login/")["Content-Security-Policy"]
    for source in sources:
        if source.startswith("/static/"):
            assert Client().get(source).status_code == 200, source


def test_the_document_is_json_where_json_is_asked_for_and_no_login_is_needed() -> None:
    assert json.loads(Client().get("/api/schema/?format=json").content)["openapi"] == "3.1.0"
