"""A turn as the Messages API writes it: server-sent events, or one JSON message."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import orjson

from tests.fakes.anthropic_cache import Counted
from tests.fakes.anthropic_script import Block, Call, Redacted, Text, Thinking, Turn

SECRET = b"the fake signs its reasoning"


def event(name: str, body: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps({"type": name, **body}) + b"\n\n"


PING = event("ping", {})
MESSAGE_STOP = event("message_stop", {})


def error_body(error_type: str, message: str, request_id: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": error_type, "message": message}, "request_id": request_id}


@dataclass(slots=True)
class Rendered:
    """The events of a turn. Each group holds at most one delta, with what stands around it, so groups can be paced."""

    groups: list[bytes] = field(default_factory=list)
    content: list[dict[str, Any]] = field(default_factory=list)
    output_tokens: int = 0

    @property
    def body(self) -> bytes:
        return b"".join(self.groups)

    def before_first(self) -> bytes:
        """What stands before the first delta."""
        first = self.groups[0]
        return first[: first.index(b"event: content_block_delta")] if b"_delta" in first else b""

    def failing(self, turn: Turn) -> bytes:
        """An error in mid-stream."""
        return event("error", error_body(turn.error_type, turn.message, "req_midstream"))

    def framed(self, opening: str) -> bytes:
        """An event of the test's own."""
        return b"event: message\ndata: " + opening.encode() + b"\n\n"


def render(turn: Turn, *, counted: Counted, message_id: str, model: str, new_call_id: Any) -> Rendered:
    """The whole stream of a turn, from message_start to message_stop."""
    rendered = Rendered()
    start = {**envelope(message_id, model), "usage": {**usage(counted), "output_tokens": 1, "service_tier": "standard"}}
    pending = event("message_start", {"message": start})
    has_delta = False
    for index, block in enumerate(turn.blocks):
        opened, deltas, whole = _block(block, index, new_call_id)
        rendered.content.append(whole)
        pending += event("content_block_start", {"index": index, "content_block": opened})
        if not index:
            pending += PING
        for delta in deltas:
            if has_delta:
                rendered.groups.append(pending)
                pending = b""
            pending += delta
            has_delta = True
        pending += _block_stop(index)
        rendered.output_tokens += len(deltas)
    stop = {"stop_reason": turn.ending, "stop_sequence": None, "stop_details": details(turn)}
    pending += event("message_delta", {"delta": stop, "usage": {"output_tokens": max(1, rendered.output_tokens)}})
    rendered.groups.append(pending + MESSAGE_STOP)
    return rendered


def whole_message(turn: Turn, rendered: Rendered, *, counted: Counted, message_id: str, model: str) -> dict[str, Any]:
    """The same turn as the answer to a request that did not ask to stream."""
    return {
        **envelope(message_id, model),
        "content": rendered.content,
        "stop_reason": turn.ending,
        "stop_details": details(turn),
        "usage": {**usage(counted), "output_tokens": max(1, rendered.output_tokens), "service_tier": "standard"},
    }


def envelope(message_id: str, model: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def usage(counted: Counted) -> dict[str, Any]:
    return {
        "input_tokens": counted.fresh,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.read,
        "cache_creation": {"ephemeral_5m_input_tokens": counted.written, "ephemeral_1h_input_tokens": 0},
    }


def details(turn: Turn) -> dict[str, Any] | None:
    if turn.ending != "refusal":
        return None
    return {"type": "refusal", "category": turn.category, "explanation": "Scripted refusal."}


def signature_of(text: str) -> str:
    return base64.b64encode(blake2b(text.encode(), key=SECRET).digest()).decode()


def redacted_data(payload: str) -> str:
    return base64.b64encode(payload.encode()).decode() + "." + signature_of(payload)


def is_genuine(block: dict[str, Any]) -> bool:
    """Whether a reasoning block is one this server made, unchanged."""
    if block["type"] == "thinking":
        return bool(block["signature"] == signature_of(block["thinking"]))
    payload, _, seal = block["data"].partition(".")
    try:
        return bool(seal == signature_of(base64.b64decode(payload).decode()))
    except ValueError:
        return False


def _block(block: Block, index: int, new_call_id: Any) -> tuple[dict[str, Any], list[bytes], dict[str, Any]]:
    """How a block opens, its deltas, and the whole of it."""
    match block:
        case Text():
            pieces = block.pieces if block.pieces is not None else pieces_of(block.text)
            return {"type": "text", "text": ""}, [_text_delta(index, piece) for piece in pieces], _text(pieces)
        case Thinking():
            signature = signature_of(block.text)
            deltas = [_delta(index, {"type": "thinking_delta", "thinking": word}) for word in pieces_of(block.text)]
            deltas.append(_delta(index, {"type": "signature_delta", "signature": signature}))
            whole = {"type": "thinking", "thinking": block.text, "signature": signature}
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas, whole
        case Redacted():
            whole = {"type": "redacted_thinking", "data": redacted_data(block.payload)}
            return whole, [], whole
        case Call():
            opened: dict[str, Any] = {
                "type": "tool_use",
                "id": block.id or new_call_id(),
                "name": block.name,
                "input": {},
            }
            written = block.arguments
            if not isinstance(written, str):
                written = orjson.dumps(written).decode() if written else ""
            deltas = [_json_delta(index, piece) for piece in ("", *cut(written, block.pieces))]
            return opened, deltas, {**opened, "input": _parsed(written)}


def _text(pieces: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "text", "text": "".join(pieces)}


def pieces_of(text: str) -> tuple[str, ...]:
    parts = text.split(" ")
    return tuple(part + " " for part in parts[:-1]) + ((parts[-1],) if parts[-1] else ())


def cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _parsed(written: str) -> Any:
    try:
        return orjson.loads(written) if written else {}
    except orjson.JSONDecodeError:
        return {}


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return event("content_block_delta", {"index": index, "delta": delta})


@lru_cache(maxsize=4096)
def _text_delta(index: int, piece: str) -> bytes:
    return _delta(index, {"type": "text_delta", "text": piece})


@lru_cache(maxsize=1024)
def _json_delta(index: int, piece: str) -> bytes:
    return _delta(index, {"type": "input_json_delta", "partial_json": piece})


@lru_cache(maxsize=64)
def _block_stop(index: int) -> bytes:
    return event("content_block_stop", {"index": index})
