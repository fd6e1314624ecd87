"""What can be read: conversations, tools, modes, the balance and the ledger."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django.test import Client

from chat.models import Conversation
from tests.harness.doors import Visitor, by_key, by_session
from tests.harness.soundness import nothing_breaks
from tests.people import bearer, key_text, make_alice, make_unverified, sign_in


def pages(visitor: Visitor, path: str) -> list[list[dict[str, object]]]:
    """Every page of a list, by its `next` addresses."""
    found = []
    following: str | None = path
    while following:
        page = visitor.get(following).json()
        found.append(page["results"])
        following = page["next"] and "{0.path}?{0.query}".format(urlsplit(page["next"]))
    return found


def test_conversations_are_listed_newest_first_with_a_cursor(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        made = [alice.answer(f"Count to {number}.")["conversation_id"] for number in range(1, 6)]
        charlie.answer("Count to 9.")
        listed = pages(alice, "/api/conversations?limit=2")
        assert [len(page) for page in listed] == [2, 2, 1]
        assert [one["id"] for page in listed for one in page] == made[::-1]
        alice.answer("Count to 6.", conversation_id=made[0])
        assert alice.get("/api/conversations?limit=1").json()["results"][0]["id"] == made[0]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=-1", "cursor=nonsense"])
def test_a_page_that_cannot_be_is_refused(server: str, query: str) -> None:
    with by_key(server) as alice:
        for path in ("/api/conversations", "/api/billing/ledger"):
            refused = alice.get(f"{path}?{query}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")


def test_conversations_are_found_by_words_of_the_title_and_of_what_was_said(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        mine = alice.answer("Count to 17. Platypus.")["conversation_id"]
        alice.answer("Count to 3.")
        charlie.answer("Count to 4. Platypus.")
        for words in ("platypus", "PLATYPUS", "16, 17."):
            assert [one["id"] for one in alice.get("/api/conversations", params={"q": words}).json()["results"]] == [
                mine
            ]
        assert alice.get("/api/conversations", params={"q": "%_\\\x00"}).json()["results"] == []


def test_a_conversation_is_renamed_pinned_archived_and_given_a_mode(server: str) -> None:
    with by_session(server) as alice:
        made = alice.post("/api/conversations", {"title": "Plans"})
        assert made.status_code == 201
        path = f"/api/conversations/{made.json()['id']}"
        change = {"title": "New plans", "pinned": True, "archived": True, "mode": "quick"}
        changed = alice.http.patch(path, json=change).json()
        assert {name: changed[name] for name in change} == change
        assert alice.get(path).json()["title"] == "New plans"
        assert alice.http.patch(path, json={}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [{"title": "x" * 201}, {"title": None}, {"title": "a\x00b"}, {"mode": "nonsense"}, {"pinned": "perhaps"}, []],
)
def test_a_change_that_cannot_be_is_refused_and_nothing_is_changed(server: str, change: object) -> None:
    with by_key(server) as alice:
        path = f"/api/conversations/{alice.post('/api/conversations', {'title': 'Plans'}).json()['id']}"
        refused = alice.http.patch(path, json=change)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
        assert alice.get(path).json()["title"] == "Plans"


def test_hidden_fields_of_a_conversation_are_not_for_clients(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        hers = alice.post("/api/conversations", {"title": "Plans", "person": str(charlie.person.pk), "id": "1"}).json()
        path = f"/api/conversations/{hers['id']}"
        alice.http.patch(path, json={"person": str(charlie.person.pk), "query_counter": 99, "created_at": None})
        row = Conversation.objects.get(pk=hers["id"])
        assert (row.person_id, row.query_counter) == (alice.person.pk, 0)


def test_a_deleted_conversation_is_gone_with_its_runs_and_the_ledger_keeps_what_was_paid(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        answer = alice.answer("Count to 3.")
        path = f"/api/conversations/{answer['conversation_id']}"
        assert alice.http.delete(path).status_code == 204
        assert alice.get(path).status_code == alice.get(f"/api/runs/{answer['run_id']}").status_code == 404
        assert alice.balance() == {"daily": 45, "pack": 0, "held": 0}
        assert any(row["kind"] == "settle" for row in alice.get("/api/billing/ledger").json()["results"])


def test_tools_are_listed_with_schema_and_price(server: str) -> None:
    with by_key(server) as alice:
        tools = {tool["name"]: tool for tool in alice.get("/api/tools").json()["results"]}
    assert tools["calculator"]["price"] == 2
    assert tools["calculator"]["schema"]["required"] == ["expression"]
    assert {"name", "description", "schema", "category", "price", "contexts"} <= tools["calculator"].keys()


def test_modes_say_what_they_are_and_whether_they_can_be_used(server: str) -> None:
    with by_key(server) as alice:
        modes = {mode["name"]: mode for mode in alice.get("/api/modes").json()["results"]}
    assert list(modes) == ["assistant", "grounded", "quick", "builder", "research"]
    assert all(mode["available"] and not mode["missing"] for mode in modes.values())


def test_billing_names_the_plan_the_balance_and_every_limit(server: str) -> None:
    with by_key(server) as alice:
        alice.answer("What is 17.5 % of 2,480?")
        billing = alice.get("/api/billing").json()
    assert billing["balance"] == {"daily": 43, "pack": 0, "held": 0}
    assert billing["limits"][0]["name"] == "daily"
    assert (billing["limits"][0]["used"], billing["limits"][0]["max"]) == (7, 50)
    assert billing["limits"][0]["resets_at"]
    assert billing["ceiling"] == 25
    assert billing["time_zone"]
    assert billing["plan"]


def test_the_ledger_lists_every_movement_newest_first_and_names_the_run(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        answer = alice.answer("What is 17.5 % of 2,480?")
        charlie.answer("Count to 3.")
        listed = pages(alice, "/api/billing/ledger?limit=2")
        rows = [row for page in listed for row in page]
        assert [row["kind"] for row in rows][:3] == ["settle", "hold", "hold"]
        assert rows[0]["spent"] == 7
        assert {row["run_id"] for row in rows[:3]} == {answer["run_id"]}
        assert rows[0]["balance_after"] == {"daily": 43, "pack": 0}
        assert rows == alice.get("/api/billing/ledger?limit=100").json()["results"]


def test_a_ledger_without_entries_is_an_empty_list() -> None:
    assert sign_in(make_unverified()).get("/api/billing/ledger").json() == {"results": [], "next": None}


@pytest.mark.parametrize("path", ["/api/conversations", "/api/knowledge-bases", "/api/billing", "/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["OPTIONS", "QUERY", "TRACE"])
def test_a_method_that_a_door_does_not_take_is_refused_as_such(path: str, method: str) -> None:
    browser = Client(headers=bearer(key_text(make_alice())), enforce_csrf_checks=True)
    assert browser.generic(method, path).status_code == 405
