"""A conversation is a tree of runs: what a question follows, and which branch is shown."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import Run
from tests.fakes.anthropic import AnthropicFake
from tests.harness.doors import Visitor, by_key
from tests.harness.soundness import nothing_breaks


def thread(visitor: Visitor, conversation_id: str) -> dict[str, Any]:
    found: dict[str, Any] = visitor.get(f"/api/conversations/{conversation_id}").json()
    return found


def shown(visitor: Visitor, conversation_id: str) -> list[tuple[str, str | None]]:
    messages = thread(visitor, conversation_id)["messages"]
    return [(message["query_id"], message["parent"]) for message in messages]


def test_a_question_follows_the_end_of_the_branch_shown(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        where = alice.answer("Count to 1.")["conversation_id"]
        assert alice.answer("Count to 2.", conversation_id=where)["message_id"] == "q2-r"
        assert shown(alice, where) == [("q1", None), ("q2", "q1-r")]
        assert thread(alice, where)["branches"] == {}


def test_regenerating_makes_a_sibling_and_shows_it(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        where = alice.answer("Count to 1.")["conversation_id"]
        alice.answer("Count to 2.", conversation_id=where)
        alice.answer("Count to 2.", conversation_id=where, parent="q1-r")
        assert shown(alice, where) == [("q1", None), ("q3", "q1-r")]
        assert thread(alice, where)["branches"] == {"q2": ["q2", "q3"], "q3": ["q2", "q3"]}


def test_a_question_may_start_the_conversation_anew(server: str) -> None:
    with by_key(server) as alice:
        where = alice.answer("Count to 1.")["conversation_id"]
        alice.answer("Count to 2.", conversation_id=where, parent=None)
        assert shown(alice, where) == [("q2", None)]
        assert thread(alice, where)["branches"] == {"q1": ["q1", "q2"], "q2": ["q1", "q2"]}


def test_the_model_is_shown_the_branch_and_not_its_siblings(vendor_server: str, anthropic_fake: AnthropicFake) -> None:
    with by_key(vendor_server) as alice:
        where = alice.answer("The first question.")["conversation_id"]
        alice.answer("The abandoned question.", conversation_id=where)
        alice.answer("The edited question.", conversation_id=where, parent="q1-r")
    said = str(anthropic_fake.requests()[-1]["body"]["messages"])
    assert "The first question." in said
    assert "The edited question." in said
    assert "abandoned" not in said


@pytest.mark.parametrize("parent", ["q9-r", "q0-r", "q1", "q1-r ", "", 1, True, [], "q99999999999-r", "q1-t1"])
def test_a_parent_that_is_no_answer_of_this_conversation_is_refused(server: str, parent: object) -> None:
    with nothing_breaks(), by_key(server) as alice:
        where = alice.answer("Count to 1.")["conversation_id"]
        error = alice.refused("Count to 2.", status=400, conversation_id=where, parent=parent)
        assert error["code"] == "invalid"
        assert list(error["fields"]) == ["parent"]
        assert Run.objects.filter(person=alice.person).count() == 1
        assert alice.balance() == {"daily": 45, "pack": 0, "held": 0}


def test_a_question_without_conversation_cannot_follow_anything(server: str) -> None:
    with by_key(server) as alice:
        assert alice.refused("Hello?", status=400, parent="q1-r")["code"] == "invalid"
        assert alice.get("/api/conversations").json()["results"] == []


def test_the_mode_of_a_conversation_is_that_of_its_last_question(server: str) -> None:
    with by_key(server) as alice:
        where = alice.answer("Count to 1.", mode="quick")["conversation_id"]
        assert alice.answer("Count to 2.", conversation_id=where)["receipt"]["mode"] == "quick"
        alice.answer("Count to 3.", conversation_id=where, mode="research")
        assert thread(alice, where)["mode"] == "research"
