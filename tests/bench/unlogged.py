"""KlerAI without the writing of its events, for bench_streams: what is missing here is the event log's share."""

from __future__ import annotations

import asyncio

import django

django.setup()

from chat.eventlog import Channel, EventLog
from chat.eventrows import Standing
from chat.profiles import PROFILES
from chat.runner import Runner
from chat.tools.registry import discover
from chat.wakeups import Polling
from chat.wiring import Runtime, choose_routes
from klerai.asgi import WithRuntime
from klerai.asgi import application as logged
from klerai.database import in_database, limit_threads


class Unwritten(EventLog):
    """Shows events without storing them."""

    async def _write_together(self, channels: list[Channel]) -> None:
        for channel in channels:
            self._apply(channel, len(channel.waiting), {channel.run_key: Standing(must_stop=False)})


async def start() -> Runtime:
    limit_threads()
    route, _ = await in_database(choose_routes, PROFILES)
    log, tools = Unwritten(lease_seconds=300, wakeups=Polling()), discover()
    runner = Runner(log=log, tools=tools, profiles=PROFILES, route=lambda run: route, max_runs=1000)
    return Runtime(runner, log, tools, route, [asyncio.create_task(log.write_forever())])


application = WithRuntime(logged._application, start=start)
