"""Hostile questions at the doors: the contract's error, no run, nothing charged, and the server lives on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat.models import Conversation, Run
from tests.harness.doors import Visitor, by_key
from tests.harness.soundness import nothing_breaks

FULL = {"daily": 50, "pack": 0, "held": 0}
NONSENSE = "".join(chr(33 + number % 90) for number in range(1_000))


def untouched(visitor: Visitor) -> bool:
    return (
        not Run.objects.filter(person=visitor.person).exists()
        and not Conversation.objects.filter(person=visitor.person).exists()
        and visitor.balance() == FULL
    )


def sent(visitor: Visitor, raw: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    response = visitor.http.post("/api/chat", content=raw, headers={"Content-Type": "application/json", **headers})
    return response.status_code, response.json()["error"]


@pytest.mark.parametrize(
    "words", [NONSENSE, "x" * 32_000, "🎉" * 1_000, "‏שלום" * 200, "a\u0301" * 500, "'; DROP TABLE"]
)
def test_any_text_of_up_to_32000_characters_is_a_question(server: str, words: str) -> None:
    with nothing_breaks(), by_key(server) as alice:
        answer = alice.answer(words)
        thread = alice.get(f"/api/conversations/{answer['conversation_id']}").json()
        assert thread["messages"][0]["message"] == words


@pytest.mark.parametrize("length", [32_001, 33_000, 80_000])
def test_a_longer_text_is_refused_with_its_length(server: str, length: int) -> None:
    with by_key(server) as alice:
        error = alice.refused("x" * length, status=413)
        assert error["code"] == "message_too_long"
        assert (error["used"], error["max"]) == (length, 32_000)
        assert "Nothing was charged" in error["message"]
        assert untouched(alice)


def test_three_million_characters_are_refused_before_they_are_read(server: str) -> None:
    with by_key(server) as alice:
        error = alice.refused("x" * 3_000_000, status=413)
        assert error["code"] == "message_too_long"
        assert untouched(alice)


def test_a_body_of_unknown_length_is_read_no_further_than_the_limit(server: str) -> None:
    with by_key(server) as alice:
        pieces = (b'{"message": "' if number == 0 else b"x" * 10_000 for number in range(100))
        response = alice.http.post("/api/chat", content=pieces, headers={"Content-Type": "application/json"})
        assert (response.status_code, response.json()["error"]["code"]) == (413, "message_too_long")
        assert untouched(alice)


@pytest.mark.parametrize("escaped", [r"a\u0000b", r"\ud800", r"\udfff tail", r"\udc00\ud800"])
def test_text_that_no_database_holds_is_an_invalid_message(server: str, escaped: str) -> None:
    with by_key(server) as alice:
        frame = '{"type": "ask", "message": "' + escaped + '"}'
        status, error = sent(alice, frame.encode())
        assert (status, error["code"]) == (400, "invalid_message")
        with alice.socket() as socket:
            socket.send(frame)
            assert socket.receive()["data"]["code"] == "invalid_message"
        assert untouched(alice)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"NaN",
        b'{"message": NaN}',
        b'{"message": "\xff"}',
        b"[" * 100_000,
        b'{"message": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"a":' * 20_000,
        b"message=hello",
    ],
    ids=range(12),
)
def test_a_body_that_is_no_json_object_is_invalid(server: str, raw: bytes) -> None:
    with by_key(server) as alice:
        status, error = sent(alice, raw)
        assert (status, error["code"]) == (400, "invalid")
        assert untouched(alice)


def test_another_content_type_is_unsupported(server: str) -> None:
    with by_key(server) as alice:
        response = alice.http.post("/api/chat", data={"message": "Hello?"})
        assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported")
        assert untouched(alice)


@pytest.mark.parametrize("message", [None, "", "   \n\t", 5, True, [], {}, ["Hello?"]])
def test_a_message_that_is_no_text_is_invalid(server: str, message: object) -> None:
    with by_key(server) as alice:
        error = alice.refused(message, status=400)
        assert (error["code"], list(error["fields"])) == ("invalid", ["message"])
        assert untouched(alice)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "nonsense"),
        ("mode", ""),
        ("mode", 5),
        ("mode", []),
        ("run_id", "nonsense"),
        ("run_id", 5),
        ("run_id", [1]),
        ("conversation_id", 5),
        ("conversation_id", {}),
        ("tools", "yes"),
        ("tools", None),
        ("tools", 1),
        ("parent", 5),
        ("temporary", "yes"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused_by_its_name(server: str, field: str, value: object) -> None:
    with by_key(server) as alice:
        error = alice.refused("Hello?", status=400, **{field: value})
        assert error["code"] in ("invalid", "unsupported")
        assert field in json.dumps(error).lower()
        assert untouched(alice)


def test_a_conversation_id_that_is_no_uuid_is_a_conversation_that_does_not_exist(server: str) -> None:
    with by_key(server) as alice:
        assert alice.refused("Hello?", status=404, conversation_id="nonsense")["code"] == "not_found"
        assert untouched(alice)


def test_a_deep_but_small_body_is_no_trouble(server: str) -> None:
    deep: Any = "leaf"
    for _ in range(900):
        deep = {"k": deep}
    with nothing_breaks(), by_key(server) as alice:
        status = alice.ask("Count to 3.", context=deep).status_code
        assert status in (200, 400)


def test_a_frame_larger_than_a_body_may_be_closes_the_socket(server: str) -> None:
    with by_key(server) as alice:
        with alice.socket() as socket:
            socket.ask("x" * 300_000)
            with pytest.raises(Exception, match="1009"):
                socket.receive()
        assert untouched(alice)
