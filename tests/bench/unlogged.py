"""KlerAI without the writing of its events, for bench_streams: what is missing here is the event log's share."""

from __future__ import annotations

import django

django.setup()

from chat.eventlog import Channel, EventLog
from chat.eventrows import Standing
from chat.wakeups import Polling
from chat.wiring import Runtime
from klerai.asgi import WithRuntime
from klerai.asgi import application as logged


class Unwritten(EventLog):
    """Shows events without storing them."""

    async def _write_together(self, channels: list[Channel]) -> None:
        for channel in channels:
            self._apply(channel, len(channel.waiting), {channel.run_key: Standing(must_stop=False)})


async def start() -> Runtime:
    return await Runtime.start(log=Unwritten(lease_seconds=300, wakeups=Polling()))


application = WithRuntime(logged._application, start=start)
