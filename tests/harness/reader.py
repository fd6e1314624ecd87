"""Readers that lose their connection and come back, until they have seen a run to its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from tests.harness.frames import Frame, ServerSent, from_json

MOST_CONNECTIONS = 40
BROKEN = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)


@dataclass(slots=True)
class Reader:
    """What one viewer of a run has got, in the order it came; nothing is sorted or dropped."""

    run_id: str
    headers: Mapping[str, str]
    frames: list[Frame] = field(default_factory=list)
    connections: int = 0

    @property
    def last_seq(self) -> int:
        return self.frames[-1].seq if self.frames else 0

    @property
    def is_done(self) -> bool:
        return bool(self.frames) and self.frames[-1].is_terminal

    def keep(self, frames: list[Frame]) -> None:
        self.frames.extend(frames)

    def may_connect(self) -> bool:
        self.connections += 1
        return not self.is_done and self.connections <= MOST_CONNECTIONS


async def read_events(session: aiohttp.ClientSession, reader: Reader) -> None:
    """As an EventSource does: come back with the id of the last whole event."""
    while reader.may_connect():
        headers = {**reader.headers, "Last-Event-ID": str(reader.last_seq)}
        parser = ServerSent()
        try:
            async with session.get(f"/api/runs/{reader.run_id}/events", headers=headers) as response:
                response.raise_for_status()
                async for piece in response.content.iter_any():
                    reader.keep(parser.feed(piece))
        except BROKEN:
            await asyncio.sleep(0.01)


async def read_socket(session: aiohttp.ClientSession, reader: Reader) -> None:
    """As the page does: open a socket again and resume behind the last event seen."""
    while reader.may_connect():
        try:
            async with session.ws_connect("/ws/chat/", headers=reader.headers) as socket:
                frame = {"type": "resume", "run_id": reader.run_id, "last_seq": reader.last_seq}
                await socket.send_str(json.dumps(frame))
                while not reader.is_done:
                    received = await socket.receive()
                    if received.type is not aiohttp.WSMsgType.TEXT:
                        break
                    reader.keep([from_json(received.data)])
        except BROKEN:
            await asyncio.sleep(0.01)
