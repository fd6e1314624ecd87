"""Server-sent events, cut out of a body wherever the network happened to cut it."""

from __future__ import annotations

MAX_EVENT_BYTES = 8_000_000


class EventTooLong(ValueError):
    """An event that does not end; nothing more is read of such a body."""


class EventSplitter:
    """Turns the reads of one body into the data of its whole events; an event without an end is never given out."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, read: bytes) -> list[bytes]:
        """The data of the events this read completes, in order."""
        body = self._rest + read
        if b"\r" in body:
            body = body.replace(b"\r\n", b"\n")
        *events, self._rest = body.split(b"\n\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLong(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return [written for event in events if (written := _data_of(event))]


def _data_of(event: bytes) -> bytes:
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    head, found, data = event.partition(b"\ndata: ")
    if found and b"\n" not in data and head.startswith(b"event: ") and b"\n" not in head:
        return data
    lines = (line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(lines)
