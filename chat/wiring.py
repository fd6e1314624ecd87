"""Puts the parts together, once a process. Nothing else knows which ones there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from django.conf import settings

from chat.cards import card_for, cards_for
from chat.eventlog import EventLog
from chat.follow_up import FollowUp
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
from chat.strategies.vendors import BY_STRATEGY, OFFLINE, strategy_of
from chat.sweeper import sweep_forever
from chat.tools.base import Tool
from chat.tools.registry import discover
from chat.wakeups import Polling, Wakeups
from klerai.database import in_database, limit_threads


@dataclass(slots=True)
class Runtime:
    """What a serving process has beside its views: a runner, its log, and the tasks that keep them going.

    `route` is who answers, `wishes` who does in a mode that wishes for somebody else.
    """

    runner: Runner
    log: EventLog
    tools: dict[str, Tool]
    servers: Servers
    route: Route
    wishes: dict[str, Route] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    async def start(
        cls,
        *,
        route: Route | None = None,
        tools: Mapping[str, Tool] | None = None,
        servers: Servers | None = None,
        log: EventLog | None = None,
        profiles: Mapping[str, Profile] = PROFILES,
    ) -> Self:
        """Build and start everything, by the settings where nothing is given. Call it inside the loop that serves."""
        limit_threads()
        chosen, wishes = (route, {}) if route else await in_database(choose_routes, profiles)
        offered = dict(discover() if tools is None else tools)
        outside = servers or Servers(settings.MCP)
        log = log or EventLog(lease_seconds=settings.LEASE_SECONDS, wakeups=_wakeups())

        def route_of(run: Run) -> Route:
            return wishes.get(run.mode, chosen)

        async def tools_of(run: Run) -> Mapping[str, Tool]:
            return tools_with(offered, await outside.tools_for(run.person_id))

        runner = Runner(
            log=log,
            tools=tools_of,
            profiles=profiles,
            route=route_of,
            max_runs=settings.MAX_RUNS,
            afterwards=FollowUp(
                Summariser(chosen.small) if chosen.small is not None else None,
                knows_web="perplexity_search" in offered,
            ),
        )
        tasks = [asyncio.create_task(log.write_forever()), asyncio.create_task(sweep_forever())]
        return cls(runner, log, offered, outside, chosen, wishes, tasks)

    async def drain(self, *, seconds: float | None = None) -> None:
        """Take no new runs, let those here finish for a while, end the rest; a second time there is nothing to do."""
        await self.runner.drain(seconds=settings.DRAIN_SECONDS if seconds is None else seconds)

    async def stop(self, *, seconds: float | None = None) -> None:
        """Drain, and close what was opened."""
        await self.drain(seconds=seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        routes = (self.route, *self.wishes.values())
        for strategy in {each.strategy for route in routes for each in (route, *route.spares)}:
            await strategy.aclose()
        await self.servers.aclose()
        await self.log.aclose()


def choose_routes(profiles: Mapping[str, Profile]) -> tuple[Route, dict[str, Route]]:
    """Who answers as the settings ask, and in the modes that wish for somebody else.

    A wish for a vendor the settings know no way to is not granted. What stands in for a model is a card of the same
    vendor, or one that an operator lets stand in anywhere, never the strategy without a model.
    """
    build = cache(_strategy)
    chosen = _route(settings.STRATEGY, "", build)
    wishes = {
        name: _route(profile.strategy or settings.STRATEGY, profile.model, build)
        for name, profile in profiles.items()
        if _is_wish(profile)
    }
    return chosen, wishes


def _is_wish(profile: Profile) -> bool:
    if not profile.strategy:
        return bool(profile.model) and settings.STRATEGY != OFFLINE
    access = settings.MODEL_ACCESS.get(profile.strategy)
    return profile.strategy == settings.STRATEGY or (access is not None and access.is_set)


def _route(strategy: str, model: str, build: Callable[[str], ModelStrategy]) -> Route:
    """The small model is the same vendor's; the strategy without a model has none."""
    if strategy == OFFLINE:
        return Route(build(OFFLINE), card_for(OFFLINE, OFFLINE))
    access = settings.MODEL_ACCESS
    reachable = {name for name, found in access.items() if found.is_set}
    first, *others = cards_for(strategy, model or access[strategy].model, reachable=reachable)
    small = settings.SMALL_MODEL if strategy == settings.STRATEGY else ""
    return Route(
        build(strategy),
        first,
        tuple(Route(build(card.strategy), card) for card in others),
        SmallModel(build(strategy), card_for(strategy, small) if small else first),
    )


def _strategy(name: str) -> ModelStrategy:
    if name == OFFLINE:
        return Offline()
    return Retrying(strategy_of(BY_STRATEGY[name], settings.MODEL_ACCESS[name]))


def _wakeups() -> Wakeups:
    if not settings.REDIS_URL:
        return Polling()
    from chat.redis_wakeups import OverRedis  # half a second of import: only where it is used

    return OverRedis()


def runtime_of(scope: dict[str, Any]) -> Runtime:
    """The runtime of the process that serves this request."""
    runtime: Runtime = scope["state"]["runtime"]
    return runtime
