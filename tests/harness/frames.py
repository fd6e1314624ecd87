"""Events as a client gets them, over any door."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.models import Run, RunEvent

TERMINAL = frozenset({"message_complete", "error"})


@dataclass(frozen=True, slots=True)
class Frame:
    """One event; what two doors say of the same event compares equal."""

    seq: int
    type: str
    data: dict[str, Any]

    @property
    def is_terminal(self) -> bool:
        return self.type in TERMINAL


class ServerSent:
    """Takes an SSE body as it comes, in pieces of any size, and gives its whole events."""

    def __init__(self) -> None:
        self._rest = b""
        self.pings = 0

    def feed(self, piece: bytes) -> list[Frame]:
        *whole, self._rest = (self._rest + piece).split(b"\n\n")
        return [frame for block in whole if (frame := self._frame(block)) is not None]

    def _frame(self, block: bytes) -> Frame | None:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
        if b"data" not in fields:
            self.pings += 1
            return None
        return Frame(int(fields[b"id"]), fields[b"event"].decode(), json.loads(fields[b"data"]))


def server_sent(pieces: Iterable[bytes]) -> Iterator[Frame]:
    reader = ServerSent()
    for piece in pieces:
        yield from reader.feed(piece)


def from_json(text: str | bytes) -> Frame:
    """A frame of a WebSocket or a line of `ask --json`."""
    written = json.loads(text)
    return Frame(written["seq"], written["type"], written["data"])


def logged(run_id: UUID | str) -> list[Frame]:
    """What the database holds of a run."""
    rows = RunEvent.objects.filter(run__run_id=run_id).order_by("seq").values_list("seq", "type", "data")
    return [Frame(*row) for row in rows]


def run_row(run_id: UUID | str) -> Run:
    return Run.objects.select_related("conversation", "person").get(run_id=run_id)


def of_type(frames: Sequence[Frame], kind: str) -> list[Frame]:
    return [frame for frame in frames if frame.type == kind]


def last_turn(frames: Sequence[Frame]) -> str:
    """What the chunks of the last turn join to."""
    chunks = [frame.data for frame in frames if frame.type == "content_chunk"]
    return "".join(chunk["text"] for chunk in chunks if chunk["turn"] == chunks[-1]["turn"])
