"""A plan has room for so many documents and so many bytes; what would be more is refused, whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import Client

from klerai.accounts.models import Person
from retrieval.models import Document
from tests.people import bearer, key_text, make_alice, make_charlie, sign_in
from tests.plans import on_plan

DOOR = "/api/knowledge-bases/default_kb/documents"


def sent(client: Client, *files: tuple[str, bytes]) -> object:
    return client.post(DOOR, {"file": [SimpleUploadedFile(name, data) for name, data in files]})


def program(person: Person) -> Client:
    return Client(headers=bearer(key_text(person)))


def documents_of(person: Person) -> int:
    return Document.objects.filter(knowledge_base__owner=person).count()


def test_documents_are_counted_over_all_knowledge_bases_and_the_one_too_many_is_refused() -> None:
    alice = on_plan(make_alice(), most_documents=2)
    client = program(alice)
    client.post("/api/knowledge-bases", {"name": "Other"}, content_type="application/json")
    other = client.get("/api/knowledge-bases").json()["results"][0]["slug"]
    assert sent(client, ("a.txt", b"one")).status_code == 202
    assert client.post(f"/api/knowledge-bases/{other}/documents", {"file": SimpleUploadedFile("b.txt", b"two")})
    answer = sent(client, ("c.txt", b"three"))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (413, "message_too_long")
    assert (error["limit"], error["used"], error["max"], error["resets_at"]) == ("documents", 2, 2, None)
    assert "Tiny has room for 2 documents" in error["message"]
    assert error["upgrade_url"] == "/billing/"
    assert documents_of(alice) == 2


def test_bytes_are_counted_and_a_request_is_taken_whole_or_not_at_all() -> None:
    alice = on_plan(make_alice(), most_bytes=1_000)
    client = program(alice)
    answer = sent(client, ("a.txt", b"x" * 600), ("b.txt", b"y" * 600))
    error = answer.json()["error"]
    assert (answer.status_code, error["limit"], error["used"], error["max"]) == (413, "storage", 0, 1_000)
    assert documents_of(alice) == 0
    assert sent(client, ("a.txt", b"x" * 600), ("b.txt", b"y" * 400)).status_code == 202
    assert client.get("/api/billing").json()["storage"] == {
        "documents": {"used": 2, "max": None},
        "bytes": {"used": 1_000, "max": 1_000},
    }


def test_a_file_that_is_there_already_costs_no_room_and_a_smaller_version_is_taken() -> None:
    alice = on_plan(make_alice(), most_bytes=500, most_documents=1)
    client = program(alice)
    for data in (b"x" * 500, b"x" * 500, b"z" * 300):
        assert sent(client, ("a.txt", data)).status_code == 202
    assert sent(client, ("a.txt", b"x" * 501)).status_code == 413
    document = Document.objects.get(knowledge_base__owner=alice)
    assert document.bytes == 300


def test_who_has_more_than_a_new_plan_has_room_for_keeps_it_and_adds_nothing() -> None:
    alice = make_alice()
    client = program(alice)
    assert sent(client, ("a.txt", b"one"), ("b.txt", b"two")).status_code == 202
    on_plan(alice, most_documents=1)
    assert sent(client, ("a.txt", b"one")).status_code == 202, "it is there already"
    assert sent(client, ("c.txt", b"three")).status_code == 413
    assert documents_of(alice) == 2


def test_a_stranger_s_documents_take_no_room_of_mine() -> None:
    alice, charlie = (on_plan(make(), most_documents=1) for make in (make_alice, make_charlie))
    assert sent(program(charlie), ("a.txt", b"one")).status_code == 202
    assert sent(program(alice), ("a.txt", b"one")).status_code == 202


def test_files_that_come_at_once_do_not_pass_together() -> None:
    alice = on_plan(make_alice(), most_documents=3)
    text = key_text(alice)

    def upload(number: int) -> int:
        try:
            return int(sent(Client(headers=bearer(text)), (f"{number}.txt", b"words")).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(upload, range(6)))
    assert codes == [202, 202, 202, 413, 413, 413]
    assert documents_of(alice) == 3


@pytest.mark.parametrize("most", [1, None])
def test_the_page_says_what_is_used_and_why_a_file_was_not_taken(most: int | None) -> None:
    alice = on_plan(make_alice(), most_documents=most, most_bytes=2_000_000_000)
    browser = sign_in(alice)
    for name in ("a.txt", "b.txt"):
        browser.post("/knowledge/default_kb/", {"file": SimpleUploadedFile(name, b"words")})
    assert documents_of(alice) == (most or 2)
    page = browser.get("/knowledge/").content.decode()
    assert ("1 of 1" in page) == (most == 1)
    assert "of 2 GB" in page
    assert ("room for 1 document," in page) == (most == 1)
