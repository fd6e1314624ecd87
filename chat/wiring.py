"""Puts the parts together, once a process. Nothing else knows which ones there are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from django.conf import settings

from chat.cards import card_for, cards_for
from chat.eventlog import EventLog
from chat.mcp.servers import Servers, tools_with
from chat.memory.summariser import Summariser
from chat.models import Run
from chat.orchestrator import Route
from chat.profiles import PROFILES, Profile
from chat.runner import Runner
from chat.strategies.base import ModelStrategy
from chat.strategies.offline import Offline
from chat.strategies.retrying import Retrying
from chat.strategies.small import SmallModel
from chat.sweeper import sweep_forever
from chat.tools.base import Tool
from chat.tools.registry import discover
from chat.wakeups import Polling, Wakeups
from klerai.database import in_database, limit_threads


@dataclass(slots=True)
class Runtime:
    """What a serving process has beside its views: a runner, its log, and the tasks that keep them going."""

    runner: Runner
    log: EventLog
    tools: dict[str, Tool]
    servers: Servers
    route: Route
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    async def start(
        cls,
        *,
        route: Route | None = None,
        tools: Mapping[str, Tool] | None = None,
        servers: Servers | None = None,
        profiles: Mapping[str, Profile] = PROFILES,
    ) -> Self:
        """Build and start everything, by the settings where nothing is given. Call it inside the loop that serves."""
        limit_threads()
        chosen = await in_database(choose_route) if route is None else route
        offered = dict(discover() if tools is None else tools)
        outside = servers or Servers(settings.MCP)
        log = EventLog(lease_seconds=settings.LEASE_SECONDS, wakeups=_wakeups())

        def route_of(run: Run) -> Route:
            return chosen

        async def tools_of(run: Run) -> Mapping[str, Tool]:
            return tools_with(offered, await outside.tools_for(run.person_id))

        runner = Runner(
            log=log,
            tools=tools_of,
            profiles=profiles,
            route=route_of,
            max_runs=settings.MAX_RUNS,
            afterwards=Summariser(chosen.small) if chosen.small is not None else None,
        )
        tasks = [asyncio.create_task(log.write_forever()), asyncio.create_task(sweep_forever())]
        return cls(runner, log, offered, outside, chosen, tasks)

    async def drain(self, *, seconds: float | None = None) -> None:
        """Take no new runs, let those here finish for a while, end the rest; a second time there is nothing to do."""
        await self.runner.drain(seconds=settings.DRAIN_SECONDS if seconds is None else seconds)

    async def stop(self, *, seconds: float | None = None) -> None:
        """Drain, and close what was opened."""
        await self.drain(seconds=seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for strategy in {self.route.strategy, *(spare.strategy for spare in self.route.spares)}:
            await strategy.aclose()
        await self.servers.aclose()
        await self.log.aclose()


def choose_route() -> Route:
    """The strategy the settings ask for.

    What stands in for a vendor's model is another model of that vendor, never the offline strategy. The small model is
    the vendor's too; the strategy without a key has none.
    """
    match settings.STRATEGY:
        case "anthropic":
            claude = Retrying(_anthropic())
            first, *others = cards_for("anthropic", settings.ANTHROPIC_MODEL)
            small = SmallModel(claude, card_for("anthropic", settings.SMALL_MODEL or first.model))
            return Route(claude, first, tuple(Route(claude, card) for card in others), small)
        case _:
            return Route(Offline(), card_for("offline", "offline"))


def _wakeups() -> Wakeups:
    if not settings.REDIS_URL:
        return Polling()
    from chat.redis_wakeups import OverRedis  # half a second of import: only where it is used

    return OverRedis()


def _anthropic() -> ModelStrategy:
    from chat.strategies.anthropic import Anthropic  # a heavy SDK: only where it is used

    base_url = settings.ANTHROPIC_BASE_URL or "https://api.anthropic.com"
    return Anthropic(api_key=settings.ANTHROPIC_API_KEY or "not-needed", base_url=base_url)


def runtime_of(scope: dict[str, Any]) -> Runtime:
    """The runtime of the process that serves this request."""
    runtime: Runtime = scope["state"]["runtime"]
    return runtime
