"""A run's events on their way to a client that reads server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.http import StreamingHttpResponse

from chat.events import Logged
from chat.models import Run

PING_SECONDS = 15.0
PING = b": ping\n\n"


def event_stream(run: Run, body: AsyncGenerator[bytes]) -> StreamingHttpResponse:
    headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "X-Run-Id": str(run.run_id)}
    return StreamingHttpResponse(body, content_type="text/event-stream; charset=utf-8", headers=headers)


async def with_pauses(events: AsyncGenerator[Logged]) -> AsyncGenerator[Logged | None]:
    """The events, and None for every 15 s in which nothing happens."""
    async with aclosing(events):
        upcoming = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                done, _ = await asyncio.wait({upcoming}, timeout=PING_SECONDS)
                if not done:
                    yield None
                    continue
                event = upcoming.result()
                if event is None:
                    return
                yield event
                upcoming = asyncio.ensure_future(anext(events, None))
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
