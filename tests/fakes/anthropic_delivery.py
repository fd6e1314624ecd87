"""How a streamed answer leaves the fake: paced, stalled, split or cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import orjson

from tests.fakes.anthropic_records import Seen
from tests.fakes.anthropic_script import Turn
from tests.fakes.anthropic_wire import Rendered

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"request-id: %s\r\ntransfer-encoding: chunked\r\n\r\n"
)
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
PAUSE_SECONDS = 0.01
KEEP_ALIVE = b": keep-alive\n\n"


def json_response(status: int, body: Any, headers: dict[str, str]) -> bytes:
    written = orjson.dumps(body)
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"content-length: {len(written)}", "", ""]
    return "\r\n".join(lines).encode() + written


def chunked(part: bytes) -> bytes:
    """An HTTP chunk; an empty one ends the body."""
    return b"%x\r\n%s\r\n" % (len(part), part)


class Delivery:
    """Sends one answer step by step until it is done, the script ends it, or the client is gone."""

    def __init__(
        self, transport: asyncio.Transport, turn: Turn, rendered: Rendered, *, head: bytes, seen: Seen
    ) -> None:
        self._transport = transport
        self._turn = turn
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._begin = self._loop.time() + turn.first_ms / 1000
        self._head = head
        self._steps = _steps(turn, rendered)
        self._each = PAUSE_SECONDS if turn.pause_at is not None else turn.each_ms / 1000
        self._sent = 0

    @staticmethod
    def is_plain(turn: Turn) -> bool:
        """Whether the whole answer can leave in one write."""
        specials = (turn.cut_at, turn.ends_at, turn.split, turn.pause_at, turn.error_after, turn.opening)
        return not (turn.first_ms or turn.each_ms or turn.stall) and all(value is None for value in specials)

    def start(self) -> None:
        if self._turn.stall == "headers":
            return
        if self._turn.first_ms:
            self._timer = self._loop.call_at(self._begin, self._step)
        else:
            self._step()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _step(self) -> None:
        part = next(self._steps, None)
        head, self._head = self._head, b""
        if part is None:
            self._end(head)
            return
        self._transport.write(head + (chunked(part) if part else b""))
        self._sent += 1
        if self._each:
            self._timer = self._loop.call_at(self._begin + self._sent * self._each, self._step)
        else:
            self._timer = self._loop.call_soon(self._step)

    def _end(self, head: bytes) -> None:
        """What follows the last part: silence, a dropped connection, or a proper end."""
        if head:
            self._transport.write(head)
        if self._turn.stall:
            return
        self._seen.note_answered(200)
        if self._turn.cut_at is not None:
            self._transport.close()
        else:
            self._transport.write(chunked(b""))


def _steps(turn: Turn, rendered: Rendered) -> Iterator[bytes]:
    groups, body = rendered.groups, rendered.body
    if turn.opening is not None:
        return iter([rendered.framed(turn.opening), *groups])
    if turn.stall == "first_token":
        return iter([rendered.before_first()])
    if turn.stall == "queued":
        return chain([rendered.before_first()], repeat(KEEP_ALIVE))
    if turn.stall == "kept_alive":
        return chain(groups[: max(1, len(groups) // 2)], repeat(KEEP_ALIVE))
    if turn.stall == "middle":
        return iter(groups[: max(1, len(groups) // 2)])
    if turn.error_after is not None:
        return iter([*groups[: turn.error_after], rendered.failing(turn)])
    if turn.cut_at is not None or turn.ends_at is not None:
        return iter([body[: turn.cut_at if turn.cut_at is not None else turn.ends_at]])
    if turn.pause_at is not None:
        return iter([body[: turn.pause_at], body[turn.pause_at :]])
    if turn.split is not None:
        size = turn.split
        return (body[start : start + size] for start in range(0, len(body), size))
    return iter(groups)
