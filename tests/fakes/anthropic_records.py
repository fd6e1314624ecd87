"""What the fake was asked, kept for tests that count calls where they arrive."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fakes.anthropic_cache import Counted

KEPT = 5_000
SMALL_TOOLS = ("write_summaries", "write_query")  # calls around an answer, not the answer


@dataclass(slots=True)
class Seen:
    """One request. `body_bytes` is the size of its streamed answer, `connection` the number of its connection;
    `closed_early` says that the client left before the answer was out; times are monotonic seconds."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    connection: int
    key: str = ""
    status: int | None = None
    answered_at: float | None = None
    closed_early: bool = False
    closed_at: float | None = None
    counted: Counted | None = None
    output_tokens: int = 0
    body_bytes: int = 0

    @property
    def small_tool(self) -> str:
        """What a small model is made to call, if this is such work around an answer; only its own script answers it."""
        return next((name for name in SMALL_TOOLS if f'"{name}"'.encode() in self.body), "")

    def note_answered(self, status: int) -> None:
        self.status = status
        self.answered_at = time.monotonic()

    def note_closed(self) -> None:
        if self.answered_at is None:
            self.closed_early = True
            self.closed_at = time.monotonic()

    def note_usage(self, counted: Counted, *, output_tokens: int, body_bytes: int) -> None:
        self.counted = counted
        self.output_tokens = output_tokens
        self.body_bytes = body_bytes

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "headers": self.headers,
            "body": _decoded(self.body),
            "at": self.at,
            "key": self.key,
            "status": self.status,
            "answered_at": self.answered_at,
            "closed_early": self.closed_early,
            "closed_at": self.closed_at,
            "usage": self.counted,
            "output_tokens": self.output_tokens,
            "body_bytes": self.body_bytes,
            "connection": self.connection,
        }


class Records:
    """The newest requests, oldest first, and how many there were in all."""

    def __init__(self) -> None:
        self._kept: deque[Seen] = deque(maxlen=KEPT)
        self._total = 0
        self._small = 0

    def open(self, path: str, headers: dict[str, str], body: bytes, *, connection: int) -> Seen:
        seen = Seen(path, headers, body, time.monotonic(), connection)
        self._kept.append(seen)
        self._total += 1
        self._small += bool(seen.small_tool)
        return seen

    def listed(self, key: str | None) -> list[dict[str, Any]]:
        """All but those of a small model, which are had by the name of their tool; or those that carried the key."""
        if key in SMALL_TOOLS:
            return [seen.to_json() for seen in self._kept if seen.small_tool == key]
        kept = [seen for seen in self._kept if not seen.small_tool]
        return [seen.to_json() for seen in kept if key is None or key == seen.key or key.encode() in seen.body]

    def totals(self) -> dict[str, int]:
        still_open = sum(seen.answered_at is None and not seen.closed_early for seen in self._kept)
        return {"requests": self._total - self._small, "open": still_open}

    def clear(self) -> None:
        self._kept.clear()
        self._total = 0
        self._small = 0


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
