"""Questions that are not taken: what is said, and that no run, no hold and no charge is left."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from chat.models import Conversation, Run
from chat.tools.calculator import TOOL as CALCULATOR
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import says
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import Frame, run_row
from tests.harness.soundness import nothing_breaks
from tests.harness.tools import by_name
from tests.serving import served

FULL = {"daily": 50, "pack": 0, "held": 0}
SLOW = says("word " * 400, each_ms=10)


@contextmanager
def at_work(visitor: Visitor, **body: object) -> Iterator[tuple[Run, Iterator[Frame]]]:
    """A run that is answering, stopped at the end of the block."""
    with visitor.asking("Tell me at length.", **body) as frames:
        started = next(frames)
        run = Run.objects.get(conversation_id=started.data["conversation_id"], state__in=Run.LIVE)
        yield run, frames
        visitor.stop(str(run.run_id))
        list(frames)


@pytest.fixture
def slow(anthropic_fake: AnthropicFake) -> AnthropicFake:
    """A vendor that takes four seconds for what is asked at length."""
    anthropic_fake.script(SLOW, key="at length", forever=True)
    return anthropic_fake


@pytest.fixture(scope="module")
def bare_server(database: object) -> Iterator[str]:
    """A server that has no tool but the calculator."""

    async def start() -> Runtime:
        return await Runtime.start(tools=by_name(CALCULATOR))

    with served(start=start) as url:
        yield url


def test_a_second_question_in_a_busy_conversation_is_refused_and_names_the_run(
    vendor_server: str, slow: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, at_work(alice) as (run, _):
        error = alice.refused("Hello?", status=409, conversation_id=str(run.conversation_id))
        assert (error["code"], error["run_id"]) == ("conversation_busy", str(run.run_id))
        assert "Nothing was charged" in error["message"]
        assert alice.balance()["held"] == 5
        with alice.socket() as socket:
            socket.ask("Hello?", conversation_id=str(run.conversation_id))
            frame = socket.receive()
        assert (frame["seq"], frame["data"]["code"]) == (0, "conversation_busy")
        assert frame["data"]["details"]["run_id"] == str(run.run_id)


def test_a_fourth_question_at_a_time_is_too_many_for_one_person_and_no_matter_to_another(
    vendor_server: str, slow: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, by_key(vendor_server) as charlie, ExitStack() as runs:
        for _ in range(3):
            runs.enter_context(at_work(alice))
        response = alice.ask("One more?")
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (429, "rate_limited")
        assert (error["used"], error["max"]) == (3, 3)
        assert error["limit"]
        assert error["resets_at"]
        assert int(response.headers["Retry-After"]) > 0
        assert alice.balance()["held"] == 15
        assert charlie.answer("Hello?")["credits_used"] == 5


def test_the_same_run_id_with_another_body_is_a_conflict_at_every_door(server: str) -> None:
    run_id = str(uuid.uuid4())
    with nothing_breaks(), by_key(server) as alice:
        first = alice.answer("Count to 3.", run_id=run_id)
        for change in ({"message": "Count to 4."}, {"tools": False}, {"max_credits": 20}, {"mode": "quick"}):
            error = alice.refused(change.pop("message", "Count to 3."), status=409, run_id=run_id, **change)
            assert error["code"] == "run_conflict"
        with alice.socket() as socket:
            socket.ask("Count to 4.", run_id=run_id)
            frame = socket.receive()
        assert (frame["seq"], frame["data"]["code"]) == (0, "run_conflict")
        assert alice.run(run_id)["text"] == first["response"]
        assert alice.balance() == {"daily": 45, "pack": 0, "held": 0}


def test_a_mode_whose_tools_are_missing_is_unavailable(bare_server: str) -> None:
    with nothing_breaks(), by_key(bare_server) as alice:
        error = alice.refused("Hello?", status=409, mode="grounded")
        assert error["code"] == "mode_unavailable"
        assert error["missing"] == ["knowledge_base_search", "generate_response"]
        assert not Run.objects.filter(person=alice.person).exists()
        assert not Conversation.objects.filter(person=alice.person).exists()
        assert alice.balance() == FULL


def test_a_strangers_conversation_answers_like_one_that_does_not_exist(server: str) -> None:
    with nothing_breaks(), by_key(server) as alice, by_key(server) as charlie:
        hers = alice.answer("Count to 3.")["conversation_id"]
        nowhere = str(uuid.uuid4())
        for method, path, body in (
            ("GET", "/api/conversations/{}", None),
            ("PATCH", "/api/conversations/{}", {"title": "Mine"}),
            ("DELETE", "/api/conversations/{}", None),
        ):
            foreign = charlie.http.request(method, path.format(hers), json=body)
            missing = charlie.http.request(method, path.format(nowhere), json=body)
            assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
            assert foreign.status_code == 404
        foreign, missing = (charlie.ask("Hello?", conversation_id=one) for one in (hers, nowhere))
        assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
        assert foreign.json()["error"]["code"] == "not_found"
        assert foreign.content == charlie.get(f"/api/conversations/{nowhere}").content
        assert not Run.objects.filter(person=charlie.person).exists()
        assert charlie.balance() == FULL
        assert alice.get(f"/api/conversations/{hers}").json()["title"] == "Count to 3."


def test_a_strangers_run_answers_like_one_that_does_not_exist(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        hers, nowhere = alice.answer("Count to 3.")["run_id"], str(uuid.uuid4())
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/stop")):
            foreign = charlie.http.request(method, f"/api/runs/{hers}{path}")
            missing = charlie.http.request(method, f"/api/runs/{nowhere}{path}")
            assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content)
            assert foreign.status_code == 404
        with charlie.socket() as socket:
            for kind in ("resume", "stop"):
                socket.send({"type": kind, "run_id": hers, "last_seq": 0})
                foreign_frame = socket.receive()
                socket.send({"type": kind, "run_id": nowhere, "last_seq": 0})
                missing_frame = socket.receive()
                assert {**foreign_frame, "run_id": ""} == {**missing_frame, "run_id": ""}
                assert foreign_frame["data"]["code"] == "not_found"


def test_a_stranger_cannot_stop_a_run(vendor_server: str, slow: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice, by_key(vendor_server) as charlie, at_work(alice) as (run, _):
        assert charlie.stop(str(run.run_id)).status_code == 404
        assert run_row(run.run_id).stop_requested_at is None


def test_a_conversation_that_is_answering_is_not_deleted(vendor_server: str, slow: AnthropicFake) -> None:
    with nothing_breaks(), by_key(vendor_server) as alice:
        with at_work(alice) as (run, _):
            refused = alice.http.delete(f"/api/conversations/{run.conversation_id}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conversation_busy")
            assert refused.json()["error"]["run_id"] == str(run.run_id)
        assert alice.http.delete(f"/api/conversations/{run.conversation_id}").status_code == 204
        assert alice.get(f"/api/runs/{run.run_id}").status_code == 404


def test_a_ceiling_below_what_the_mode_always_costs_is_refused_with_both_figures(server: str) -> None:
    with by_key(server) as alice:
        error = alice.refused("Hello?", status=400, max_credits=6, mode="grounded")
        assert error["message"].startswith("A question in Grounded costs at least 7 credits, and its ceiling is 6.")
        assert list(error["fields"]) == ["max_credits"]
        assert not Run.objects.filter(person=alice.person).exists()
        assert alice.balance() == FULL
        assert alice.answer("How do daily credits reset?", max_credits=7, mode="grounded")["credits_used"] == 7
        assert alice.answer("Count to 3.", max_credits=5)["credits_used"] == 5


@pytest.mark.parametrize("credits", [0, 1, 4, -5, 1_001, 2**63, 1.5, True, "ten", [], {}])
def test_a_ceiling_that_is_no_number_of_credits_a_question_can_cost_is_refused(server: str, credits: object) -> None:
    with by_key(server) as alice:
        error = alice.refused("Hello?", status=400, max_credits=credits)
        assert error["code"] == "invalid"
        assert list(error["fields"]) == ["max_credits"]
        assert not Run.objects.filter(person=alice.person).exists()
        assert alice.balance() == FULL


def test_nobody_asks_without_a_login(server: str) -> None:
    with by_key(server) as alice:
        for headers in ({"Authorization": ""}, {"Authorization": "Bearer kl_000000000000_nonsense"}):
            response = alice.post("/api/chat", {"message": "Hello?"}, headers=headers)
            assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated")
