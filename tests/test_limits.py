"""Every limit names itself at every door: which, how much is used, the most, when it opens again, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone
from pytest_django import Settings
from websockets.exceptions import ConnectionClosed

from billing import credits
from chat.models import Run
from chat.profiles import PROFILES
from chat.wiring import Runtime
from klerai.accounts.models import Person
from tests.credit_people import with_packs
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, Text, Turn, calls, says
from tests.harness.doors import Socket, Visitor, by_key, by_session
from tests.harness.frames import from_json, run_row
from tests.harness.soundness import charged, nothing_breaks
from tests.people import make_person
from tests.serving import run_command, served, vendor_settings
from tests.short_of import short_of_a_confirmation, short_of_the_period, short_of_today

SUM = "What is 17.5 % of 2,480?"
ADD = Call("calculator", {"expression": "17.5 % of 2,480"})


@dataclass(frozen=True, slots=True)
class Refused:
    """What a door says; a socket has no status."""

    status: int | None
    error: dict[str, Any]
    retry_after: str = ""


def over_json(visitor: Visitor, message: str) -> Refused:
    return _answered(visitor.ask(message))


def over_events(visitor: Visitor, message: str) -> Refused:
    return _answered(visitor.post("/api/chat", {"message": message}, headers={"Accept": "text/event-stream"}))


def over_socket(visitor: Visitor, message: str) -> Refused:
    with visitor.socket() as socket:
        run_id = socket.ask(message)
        frame = socket.receive()
    assert (frame["seq"], frame["type"], frame["run_id"]) == (0, "error", run_id)
    assert frame["data"]["receipt"] is None
    return _framed(frame)


def over_completions(visitor: Visitor, message: str, *, is_streamed: bool = False) -> Refused:
    body = {"model": "assistant", "messages": [{"role": "user", "content": message}], "stream": is_streamed}
    refused = _answered(visitor.post("/v1/chat/completions", body))
    assert refused.error["type"]
    return refused


def over_streamed_completions(visitor: Visitor, message: str) -> Refused:
    return over_completions(visitor, message, is_streamed=True)


def over_query(visitor: Visitor, message: str) -> Refused:
    return _answered(visitor.post("/api/chat/query", {"query": message}))


def at_a_page(visitor: Visitor, message: str) -> Refused:
    """As static/js does it: over a socket with the page's session, asking for markup."""
    with by_session(visitor.url, visitor.person) as page, page.socket("/ws/chat/?render=1") as socket:
        socket.ask(message)
        return _framed(socket.receive())


def _answered(response: Any) -> Refused:
    return Refused(response.status_code, response.json()["error"], response.headers.get("Retry-After", ""))


def _framed(frame: dict[str, Any]) -> Refused:
    data = frame["data"]
    return Refused(None, {"code": data["code"], "message": data["message"], **data["details"]})


DOORS: tuple[Callable[[Visitor, str], Refused], ...] = (
    over_json,
    over_events,
    over_socket,
    over_completions,
    over_streamed_completions,
    over_query,
    at_a_page,
)


@dataclass(frozen=True, slots=True)
class Short:
    """Somebody without enough credits, and what is said to them. Numbers are of the limit that binds."""

    make: Callable[[], Person]
    balance: int
    name: str
    used: int
    most: int
    words: str


SHORT = (
    Short(short_of_today, 4, "daily", 46, 50, r"46 of today’s 50 credits are used; your day begins anew at 00:00, "),
    Short(
        short_of_the_period,
        3,
        "period",
        2_997,
        3_000,
        r"2,997 of this period’s 3,000 credits are used; the next 3,000 begin on \d+ \w+ at \d\d:\d\d, Europe/Berlin\.",
    ),
    Short(short_of_a_confirmation, 4, "daily", 0, 50, r"Confirm your e-mail address, and today’s 50 credits are yours"),
)


@pytest.mark.parametrize("short", SHORT, ids=lambda short: short.make.__name__)
def test_too_few_credits_name_the_limit_that_binds(server: str, short: Short) -> None:
    with nothing_breaks(), by_key(server, short.make()) as poor:
        for door in DOORS:
            refused = door(poor, "Hello?")
            error = refused.error
            assert refused.status in (402, None), door
            assert error["code"] == "insufficient_credits", door
            assert (error["balance"], error["required"]) == (short.balance, 5)
            limit = error["limit"]
            assert (limit["name"], limit["used"], limit["max"]) == (short.name, short.used, short.most)
            assert error["resets_at"] == limit["resets_at"]
            assert datetime.fromisoformat(limit["resets_at"]) > timezone.now()
            assert error["upgrade_url"] == "/billing/"
            assert f"You have {short.balance} credits; a question needs 5." in error["message"]
            assert re.search(short.words, error["message"]), error["message"]
            assert error["message"].endswith("Nothing was charged.")
        assert not Run.objects.filter(person=poor.person).exists()
        assert poor.balance()["daily"] + poor.balance()["pack"] == short.balance


@pytest.mark.parametrize(("is_sold", "way_out"), [("local", True), ("nobody", False)])
def test_packs_are_named_only_where_they_are_sold(server: str, settings: Settings, is_sold: str, way_out: bool) -> None:
    settings.STRIPE = replace(settings.STRIPE, seller=is_sold)
    with by_key(server, short_of_today()) as poor:
        assert ("Packs work now." in over_json(poor, "Hello?").error["message"]) is way_out


def test_a_message_that_is_too_long_says_how_long_it_is(server: str) -> None:
    with by_key(server) as alice:
        for door in DOORS:
            refused = door(alice, "x" * 32_001)
            assert refused.status in (413, None), door
            assert _which(refused.error) == ("message_too_long", "characters of a message", 32_001, 32_000)
            assert refused.error["resets_at"] is None
            assert "Nothing was charged. Shorten it" in refused.error["message"]
        assert alice.balance() == {"daily": 50, "pack": 0, "held": 0}


@pytest.mark.parametrize("path", ["/api/chat", "/api/chat/query", "/v1/chat/completions"])
def test_a_body_that_is_too_large_says_how_large_it_is(server: str, path: str) -> None:
    with by_key(server) as alice:
        response = alice.post(path, {"message": "x" * 300_000})
        error = response.json()["error"]
        declared = int(response.request.headers["Content-Length"])
        assert response.status_code == 413
        assert _which(error) == ("message_too_long", "bytes of a request", declared, 256_000)
        assert "Nothing was charged" in error["message"]


@pytest.mark.parametrize(
    ("frames", "reason"),
    [(["x" * 300_000], "A frame has at most 256 kB."), (["{}"] * 200, "At most 60 frames a second.")],
    ids=["too large", "too many"],
)
def test_a_socket_that_is_closed_for_its_frames_says_why(server: str, frames: list[str], reason: str) -> None:
    with by_key(server) as alice, alice.socket() as socket:
        with pytest.raises(ConnectionClosed) as closed:
            _send_all(socket, frames)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.reason == reason


def _send_all(socket: Socket, frames: list[str]) -> None:
    for frame in frames:
        socket.send(frame)
    socket.receive()


def test_a_fourth_question_at_a_time_says_that_three_are_the_most(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("word " * 400, each_ms=20), key="at length", forever=True)
    with nothing_breaks(), by_key(vendor_server) as alice, ExitStack() as stack:
        for _ in range(3):
            next(stack.enter_context(alice.asking("Tell me at length.")))
        for run in Run.objects.filter(person=alice.person, state__in=Run.LIVE):
            stack.callback(alice.stop, str(run.run_id))
        for door in DOORS:
            refused = door(alice, "One more?")
            assert refused.status in (429, None)
            assert refused.retry_after or refused.status is None
            assert _which(refused.error) == ("rate_limited", "questions at a time", 3, 3)
            assert datetime.fromisoformat(refused.error["resets_at"]) > timezone.now()
            assert refused.error["message"].endswith("Nothing was charged. Wait for one to end, or stop one.")
        assert alice.balance()["held"] == 15


def test_a_full_server_says_so_and_when_to_come_again(database: object, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(says("word " * 400, each_ms=20), key="at length")
    full = override_settings(MAX_RUNS=1, **vendor_settings(anthropic_fake.url))
    with nothing_breaks(), served(within=full) as url, by_key(url) as alice, by_key(url) as charlie:
        with alice.asking("Tell me at length.") as frames:
            next(frames)
            for door in DOORS:
                refused = door(charlie, "Hello?")
                assert refused.status in (503, None)
                assert refused.retry_after in ("5", "")
                assert _which(refused.error) == ("capacity", "questions on this server at a time", 1, 1)
                assert datetime.fromisoformat(refused.error["resets_at"]) > timezone.now()
            alice.stop(str(Run.objects.get(person=alice.person).run_id))
            list(frames)
        assert charlie.balance() == {"daily": 50, "pack": 0, "held": 0}


def _which(error: dict[str, Any]) -> tuple[str, str, int, int]:
    return error["code"], error["limit"], error["used"], error["max"]


def receipt_over_json(visitor: Visitor, body: dict[str, Any]) -> dict[str, Any]:
    return dict(visitor.answer(SUM, **body)["receipt"])


def receipt_over_events(visitor: Visitor, body: dict[str, Any]) -> dict[str, Any]:
    return dict(visitor.events(SUM, **body)[-1].data["receipt"])


def receipt_over_socket(visitor: Visitor, body: dict[str, Any]) -> dict[str, Any]:
    with visitor.socket() as socket:
        socket.ask(SUM, **body)
        return dict(list(socket.frames())[-1].data["receipt"])


def receipt_over_completions(visitor: Visitor, body: dict[str, Any]) -> dict[str, Any]:
    asked = {"model": body["mode"], "messages": [{"role": "user", "content": SUM}]}
    return dict(visitor.post("/v1/chat/completions", asked).json()["klerai"]["receipt"])


def receipt_over_streamed_completions(visitor: Visitor, body: dict[str, Any]) -> dict[str, Any]:
    asked = {"model": body["mode"], "messages": [{"role": "user", "content": SUM}], "stream": True}
    lines = visitor.post("/v1/chat/completions", asked).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return next(dict(chunk["klerai"]["receipt"]) for chunk in chunks if "klerai" in chunk)


@dataclass(frozen=True, slots=True)
class Within:
    """An answer that a limit made shorter: the mode that has it, who asks, and what the receipt says."""

    name: str
    mode: str
    used: int
    most: int
    words: str
    make: Callable[[], Person] = make_person
    script: tuple[Turn, ...] = (calls(ADD), says("About four hundred."))


def frugal() -> Person:
    person = make_person()
    Person.objects.filter(pk=person.pk).update(ceiling_credits=5)
    return person


WITHIN = (
    Within("ceiling", "assistant", 5, 5, "This question reached its ceiling of 5 credits", make=frugal),
    Within("daily", "assistant", 0, 50, "Your credits were used up", make=lambda: with_packs(6)),
    Within("tool_calls", "builder", 1, 1, "at most 1 tool calls", script=(calls(ADD, ADD), says("About 400."))),
    Within("tool_seconds", "quick", 0, 0, "gives its tools 0 seconds"),
    Within("turns", "research", 2, 2, "at most 2 turns"),
)


@pytest.fixture(scope="module")
def strict_server(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server whose modes have narrow limits, one each."""
    narrow = {
        "builder": replace(PROFILES["builder"], max_tool_calls=1),
        "quick": replace(PROFILES["quick"], all_tools_seconds=0.0),
        "research": replace(PROFILES["research"], max_turns=2, first_retrieval="no"),
    }

    async def start() -> Runtime:
        return await Runtime.start(profiles={**PROFILES, **narrow})

    with served(start=start, within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


RECEIPTS = (
    receipt_over_json,
    receipt_over_events,
    receipt_over_socket,
    receipt_over_completions,
    receipt_over_streamed_completions,
)


@pytest.mark.parametrize("within", WITHIN, ids=lambda within: within.name)
def test_a_limit_that_made_an_answer_shorter_stands_on_its_receipt(
    strict_server: str, anthropic_fake: AnthropicFake, within: Within
) -> None:
    anthropic_fake.script(*within.script * len(RECEIPTS))
    with nothing_breaks():
        for receipt in RECEIPTS:
            with by_key(strict_server, within.make()) as alice:
                found = receipt(alice, {"mode": within.mode})
            (limit,) = found["limits"]
            assert (limit["name"], limit["used"], limit["max"]) == (within.name, within.used, within.most), receipt
            assert within.words in limit["message"]
            assert (limit["resets_at"] is not None) == (within.name == "daily")
            run = Run.objects.get(person=alice.person)
            assert run.receipt == found
            assert charged(run) == found["credits"]


def test_an_answer_within_its_limits_says_nothing_of_them(server: str) -> None:
    with by_key(server) as alice:
        assert alice.answer(SUM)["receipt"]["limits"] == []


@pytest.mark.thorough
@pytest.mark.parametrize("door", [over_json, over_completions], ids=lambda door: door.__name__)
def test_credits_that_end_before_there_is_an_answer_name_the_limit_too(
    vendor_server: str, anthropic_fake: AnthropicFake, door: Callable[[Visitor, str], Refused]
) -> None:
    anthropic_fake.script(calls(ADD), Turn((Text(""),)), forever=True)
    with nothing_breaks(), by_key(vendor_server, with_packs(6)) as poor:
        refused = door(poor, SUM)
        assert (refused.status, refused.error["code"]) == (402, "insufficient_credits")
        assert refused.error["limit"]["name"] == "daily"
        assert refused.error["resets_at"]
        assert "Nothing was charged: what was on hold comes back. Confirm your e-mail" in refused.error["message"]
        with by_session(vendor_server, poor.person) as page:
            shown = page.get(f"/chat/runs/{refused.error['run_id']}/").text
        assert "Your credits ran out before there was an answer." in shown
        assert "what was on hold comes back. Confirm your e-mail" in shown
        assert "See options" in shown
        assert poor.balance() == {"daily": 0, "pack": 6, "held": 0}


def test_the_command_says_the_same_and_ends_with_3() -> None:
    told = run_command("ask", "Hello?", "--user", short_of_today().email, "--json")
    frame = from_json(told.stdout.splitlines()[-1])
    assert (told.returncode, frame.seq, frame.type) == (3, 0, "error")
    assert frame.data["code"] == "insufficient_credits"
    assert frame.data["details"]["limit"]["used"] == 46
    assert "46 of today’s 50 credits are used; your day begins anew at 00:00" in frame.data["message"]


@pytest.mark.thorough
def test_the_command_shows_the_limit_an_answer_ran_into() -> None:
    person = frugal()
    told = run_command("ask", SUM, "--user", person.email)
    assert told.returncode == 0, told.stderr
    assert "This question reached its ceiling of 5 credits" in " ".join(told.stderr.split())


def test_the_last_credits_are_spent_once_whichever_door_comes_second(
    vendor_server: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(says("word " * 400, each_ms=20), key="at length")
    with nothing_breaks(), by_key(vendor_server, with_packs(5)) as alice:
        with alice.asking("Tell me at length.") as frames:
            next(frames)
            for door in DOORS:
                error = door(alice, "And me?").error
                assert (error["code"], error["balance"]) == ("insufficient_credits", 0)
                assert "5 more are on hold for what is being answered." in error["message"]
            next(frame for frame in frames if frame.type == "content_chunk")
            run = Run.objects.get(person=alice.person)
            alice.stop(str(run.run_id))
            list(frames)
        assert charged(run_row(run.run_id)) == 5
        assert credits.balance_of(alice.person).available == 0
        assert len(anthropic_fake.requests()) == 1
