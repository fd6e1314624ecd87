"""A turn as chat completions write it: chunks of server-sent events, or one JSON completion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import orjson

from tests.fakes.anthropic_cache import Counted
from tests.fakes.anthropic_script import Call, Text, Thinking, Turn
from tests.fakes.anthropic_wire import Rendered, cut, pieces_of, signature_of
from tests.fakes.openai_manners import Manners

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
FINISHES = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def event(body: Any) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def error_body(manners: Manners, status: int, code: str, message: str, request_id: str) -> Any:
    """The error as this vendor words it."""
    kind = "invalid_request_error" if status < 429 else code
    told: Json = {"message": message, "type": kind, "param": None, "code": code}
    match manners.name:
        case "qwen_thinking" | "qwen_instruct":
            return {"error": told, "request_id": request_id}
        case "gemini":
            return [{"error": {"code": status, "message": message, "status": code.upper()}}]
        case "llama_cpp":
            return {"error": {"code": status, "message": message, "type": code}}
    return {"error": told}


@dataclass(slots=True)
class Chunks(Rendered):
    """The chunks of a turn; `call_ids` and `extras` are what was issued with its calls."""

    manners: Manners = field(kw_only=True)
    message: Json = field(default_factory=dict)
    call_ids: list[str] = field(default_factory=list)
    extras: list[Any] = field(default_factory=list)
    reasoning: str = ""

    def before_first(self) -> bytes:
        return KEEP_ALIVE + self.groups[0][: self.groups[0].index(b"\n\n") + 2]

    def failing(self, turn: Turn) -> bytes:
        told = {"message": turn.message, "type": turn.error_type, "param": None, "code": turn.error_type}
        return event({"error": told})

    def framed(self, opening: str) -> bytes:
        return b"data: " + opening.encode() + b"\n\n"


def render(turn: Turn, manners: Manners, *, counted: Counted, message_id: str, body: Json, new_call_id: Any) -> Chunks:
    """The whole stream of a turn, from the role to [DONE]."""
    chunks = Chunks(manners=manners)
    calls = [replace(block, id=block.id or new_call_id()) for block in turn.blocks if isinstance(block, Call)]
    if manners.one_call and not body.get("parallel_tool_calls"):
        calls = calls[:1]
    chunks.call_ids = [call.id for call in calls]
    chunks.extras = [_extra(call, manners) if index == 0 else None for index, call in enumerate(calls)]
    deltas = [*_words(turn, manners), *_call_deltas(calls, chunks.extras, manners)]
    chunks.reasoning = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    frame = _Frame(message_id, body["model"])
    pending = frame.chunk({"role": "assistant", "content": None if manners.reasoning else ""})
    for index, delta in enumerate(deltas):
        chunks.groups.append(pending + frame.chunk(delta))
        pending = KEEP_ALIVE if manners.keeps_alive and index % 3 == 0 else b""
    reason = FINISHES.get(turn.ending, turn.ending)
    finish = "stop" if reason == "tool_calls" and manners.calls == "unnumbered" else reason
    chunks.output_tokens = max(1, len(deltas))
    end = pending + frame.chunk({}, finish=finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        end += frame.last(usage(counted, chunks.output_tokens, manners))
    chunks.groups.append(end + DONE)
    chunks.message = _message(turn, calls, chunks, finish)
    return chunks


def whole_completion(chunks: Chunks, *, counted: Counted, message_id: str, model: str) -> Json:
    """The same turn as the answer to a request that did not ask to stream."""
    return {
        "id": message_id,
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [chunks.message],
        "usage": usage(counted, chunks.output_tokens, chunks.manners),
    }


def usage(counted: Counted, output_tokens: int, manners: Manners) -> Json:
    told: Json = {
        "prompt_tokens": counted.total,
        "completion_tokens": output_tokens,
        "total_tokens": counted.total + output_tokens,
    }
    if manners.counts == "hit_and_miss":
        return {
            **told,
            "prompt_cache_hit_tokens": counted.read,
            "prompt_cache_miss_tokens": counted.total - counted.read,
        }
    return {**told, "prompt_tokens_details": {"cached_tokens": counted.read}}


@dataclass(frozen=True, slots=True)
class _Frame:
    """What every chunk of one completion repeats."""

    message_id: str
    model: str

    def chunk(self, delta: Json, *, finish: str | None = None) -> bytes:
        return event({**self._head(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def last(self, counts: Json) -> bytes:
        return event({**self._head(), "choices": [], "usage": counts})

    def _head(self) -> Json:
        return {"id": self.message_id, "object": "chat.completion.chunk", "created": 1, "model": self.model}


def _words(turn: Turn, manners: Manners) -> list[Json]:
    deltas: list[Json] = []
    for block in turn.blocks:
        match block:
            case Thinking(text) if manners.reasoning:
                deltas += [{manners.reasoning: word} for word in pieces_of(text)]
            case Text(text, pieces):
                deltas += [{"content": piece} for piece in (pieces_of(text) if pieces is None else pieces)]
    return deltas


def _call_deltas(calls: list[Call], extras: list[Any], manners: Manners) -> list[Json]:
    """Each delta as this vendor cuts it; where calls are interleaved their pieces take turns."""
    if manners.calls != "interleaved":
        whole = [_whole(index, call, manners) for index, call in enumerate(calls)]
        told = [part | ({"extra_content": extra} if extra else {}) for part, extra in zip(whole, extras, strict=True)]
        return [{"tool_calls": [part]} for part in told]
    opened = [
        {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        for index, call in enumerate(calls)
    ]
    pieces = [
        [_part(index, call, piece, manners) for piece in cut(_written(call), call.pieces)]
        for index, call in enumerate(calls)
    ]
    parts = [*opened, *(part for turn in zip_longest(*pieces) for part in turn if part is not None)]
    return [{"tool_calls": [part]} for part in parts]


def _part(index: int, call: Call, piece: str, manners: Manners) -> Json:
    part: Json = {"index": index, "function": {"arguments": piece}}
    match manners.later_id:
        case None:
            return part
        case "":
            return {**part, "id": "", "type": "function"}
    return {**part, "id": call.id, "type": "function"}


def _whole(index: int, call: Call, manners: Manners) -> Json:
    function = {"name": call.name, "arguments": _written(call)}
    numbered = {} if manners.calls == "unnumbered" else {"index": index}
    return {**numbered, "id": call.id, "type": "function", "function": function}


def _extra(call: Call, manners: Manners) -> Any:
    """The signature of the reasoning behind the calls of a turn, which is on the first of them."""
    if manners.calls != "unnumbered":
        return None
    return {"google": {"thought_signature": signature_of(call.id)}}


def _written(call: Call) -> str:
    written = call.arguments
    if isinstance(written, str):
        return written
    return orjson.dumps(written).decode() if written else ""


def _message(turn: Turn, calls: list[Call], chunks: Chunks, finish: str) -> Json:
    text = "".join(block.text for block in turn.blocks if isinstance(block, Text))
    message: Json = {"role": "assistant", "content": text}
    if calls:
        told = [_whole(index, call, chunks.manners) for index, call in enumerate(calls)]
        message["tool_calls"] = [{name: value for name, value in part.items() if name != "index"} for part in told]
    if chunks.reasoning and chunks.manners.reasoning:
        message[chunks.manners.reasoning] = chunks.reasoning
    return {"index": 0, "message": message, "finish_reason": finish}
