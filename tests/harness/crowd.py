"""Many clients at once, each at a door of its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.harness.frames import Frame, ServerSent, from_json

PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt: the HTTP status (0 for a socket), the code of its error, and its last event."""

    status: int
    code: str = ""
    body: Mapping[str, Any] | None = None
    end: Frame | None = None


@asynccontextmanager
async def crowd(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections that are used once each, without limit."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:
        yield session


async def over_json(session: aiohttp.ClientSession, headers: Mapping[str, str], body: Mapping[str, Any]) -> Outcome:
    async with session.post("/api/chat", json=body, headers=headers) as response:
        return _answered(response.status, await response.json())


async def over_sse(session: aiohttp.ClientSession, headers: Mapping[str, str], body: Mapping[str, Any]) -> Outcome:
    accept = {**headers, "Accept": "text/event-stream"}
    async with session.post("/api/chat", json=body, headers=accept) as response:
        if response.status != 200:
            return _answered(response.status, await response.json())
        reader = ServerSent()
        frames = [frame async for piece in response.content.iter_any() for frame in reader.feed(piece)]
        return _ended(200, frames[-1])


async def over_socket(session: aiohttp.ClientSession, headers: Mapping[str, str], body: Mapping[str, Any]) -> Outcome:
    asked = {"type": "ask", "run_id": str(uuid.uuid4()), **body}
    async with session.ws_connect("/ws/chat/", headers=headers) as socket:
        await socket.send_str(json.dumps(asked))
        while True:
            frame = from_json(await socket.receive_str())
            if frame.is_terminal:
                return _ended(0, frame)


def _answered(status: int, body: Mapping[str, Any]) -> Outcome:
    return Outcome(status, body.get("error", {}).get("code", ""), body)


def _ended(status: int, frame: Frame) -> Outcome:
    return Outcome(status, frame.data.get("code", ""), end=frame)
