"""A question as a client sends it, read from JSON once, at the edge."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from uuid import UUID, uuid4

from chat.errors import Refusal
from chat.profiles import PROFILES

MAX_MESSAGE_CHARACTERS = 32_000
MAX_HISTORY = 20
MAX_SLUG_CHARACTERS = 64
Role = Literal["user", "assistant", "system"]
_NOT_ASKED = frozenset({"run_id", "type"})
_RESPONSE_REF = re.compile(r"q([1-9]\d{0,8})-r")


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The question follows the end of the branch last shown."""


@dataclass(frozen=True, slots=True)
class AtStart:
    """The question follows nothing."""


@dataclass(frozen=True, slots=True)
class After:
    """The question follows the run with this number."""

    number: int


Place = AtEnd | AtStart | After


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a history that a client gives; `system` is what its program asks of every answer."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `asked` tells a repeated body from a different one, compared by value without the run id.

    A `history` replaces memory for this run; it is kept nowhere. A `knowledge_base` is the only one it searches.
    """

    run_id: UUID
    message: str
    asked: str
    conversation_id: UUID | None = None
    mode: str | None = None
    place: Place = AtEnd()
    max_credits: int | None = None
    has_tools: bool = True
    is_temporary: bool = False
    history: tuple[Said, ...] = ()
    knowledge_base: str | None = None


def read_question(body: Any) -> Question:
    """The question in a request's JSON. Raises Refusal with the contract's code; nothing else happened."""
    if not isinstance(body, Mapping):
        raise _invalid("body", "Send a JSON object.")
    return Question(
        run_id=_uuid(body, "run_id") or uuid4(),
        message=read_message(body.get("message")),
        asked=fingerprint(body),
        conversation_id=_uuid(body, "conversation_id"),
        mode=_mode(body.get("mode")),
        place=_place(body),
        max_credits=_credits(body.get("max_credits")),
        has_tools=_flag(body, "tools", default=True),
        is_temporary=_flag(body, "temporary", default=False),
        history=_history(body.get("history")),
        knowledge_base=_slug(body.get("kb_id")),
    )


def read_message(message: Any) -> str:
    """A message of 1 to 32,000 characters that a database and a model can hold."""
    if not isinstance(message, str) or not message.strip():
        raise _invalid("message", "Write a message.")
    return _whole_text(message)


def _whole_text(message: str) -> str:
    if len(message) > MAX_MESSAGE_CHARACTERS:
        raise Refusal(
            "message_too_long",
            f"The message has {len(message):,} characters; the limit is {MAX_MESSAGE_CHARACTERS:,}. "
            "Nothing was charged. Shorten it or send it in parts.",
            status=413,
            limit="characters of a message",
            used=len(message),
            max=MAX_MESSAGE_CHARACTERS,
            resets_at=None,
        )
    if "\x00" in message or any("\ud800" <= character <= "\udfff" for character in message):
        raise Refusal(
            "invalid_message",
            "The message contains characters that are no text (NUL or half of a pair). Nothing was charged.",
            status=400,
        )
    return message


def fingerprint(body: Mapping[str, Any]) -> str:
    """A hash of the body by value: the order of its names and its run id do not count."""
    asked = {name: value for name, value in body.items() if name not in _NOT_ASKED}
    canonical = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_uuid(value: Any) -> UUID | None:
    """The UUID in `value`, or None when it is none."""
    if not isinstance(value, str):
        return None
    try:
        return UUID(value)
    except ValueError:
        return None


def _history(history: Any) -> tuple[Said, ...]:
    if history is None:
        return ()
    if not isinstance(history, list):
        raise _invalid("history", "Send a list of messages.")
    said = tuple(_said(place, message) for place, message in enumerate(history))
    if sum(message.role != "system" for message in said) > MAX_HISTORY:
        raise _invalid("history", f"Send at most {MAX_HISTORY} messages, the newest.")
    return said


def _said(place: int, message: Any) -> Said:
    match message:
        case {"role": role, "content": str(text)} if role in get_args(Role):
            return Said(role, _whole_text(text))
    raise _invalid(f"history.{place}", f"Send a role ({', '.join(get_args(Role))}) and a content.")


def _uuid(body: Mapping[str, Any], name: str) -> UUID | None:
    if body.get(name) is None:
        return None
    found = read_uuid(body[name])
    if found is None and name == "conversation_id" and isinstance(body[name], str):
        raise Refusal("not_found", "There is nothing here, or it is not yours.", status=404)
    if found is None:
        raise _invalid(name, "Send a UUID.")
    return found


def _mode(mode: Any) -> str | None:
    if mode is None or (isinstance(mode, str) and mode in PROFILES):
        return mode
    raise _invalid("mode", f"There is no such mode. Choose one of {', '.join(PROFILES)}.")


def _slug(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and 0 < len(value) <= MAX_SLUG_CHARACTERS and value.isprintable()):
        return value
    raise _invalid("kb_id", "Send the name of a knowledge base, as its address has it.")


def _place(body: Mapping[str, Any]) -> Place:
    if "parent" not in body:
        return AtEnd()
    match body["parent"]:
        case None:
            return AtStart()
        case str(ref) if found := _RESPONSE_REF.fullmatch(ref):
            return After(int(found[1]))
    raise _invalid("parent", 'Send the ID of an answer, such as "q3-r", or null for the start.')


def _credits(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise _invalid("max_credits", "Send a whole number of credits from 1 on.")
    return value


def _flag(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise _invalid(name, "Send true or false.")
    return value


def _invalid(field: str, problem: str) -> Refusal:
    return Refusal("invalid", f"{field}: {problem} Nothing was charged.", status=400, fields={field: [problem]})
