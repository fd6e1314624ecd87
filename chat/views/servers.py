"""The servers of the process that answers, asked for from its views, which run in threads beside its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from django.http import HttpRequest

from chat.mcp.servers import Servers, Status
from chat.tools.base import Tool
from chat.views.frame import person_of
from chat.wiring import Runtime

T = TypeVar("T")
ANSWER_SECONDS = 10.0
TEST_SECONDS = 20.0
logger = structlog.get_logger(__name__)


def server_tools(request: HttpRequest) -> dict[str, Tool]:
    """The tools that servers give this person; none where no runtime stands behind the request."""
    servers = _servers(request)
    return {} if servers is None else _asked(servers, servers.tools_for(person_of(request).pk), {})


def server_statuses(request: HttpRequest) -> list[Status]:
    servers = _servers(request)
    return [] if servers is None else _asked(servers, servers.statuses(person_of(request).pk), [])


def check_server(request: HttpRequest, name: str) -> Status | None:
    """Try a server now and say what came of it."""
    servers = _servers(request)
    if servers is None:
        return None
    trying = servers.check(name, person_of(request).pk, seconds=TEST_SECONDS)
    return _asked(servers, trying, None, seconds=TEST_SECONDS + ANSWER_SECONDS)


def close_own_session(request: HttpRequest) -> None:
    """After the person's token was removed or replaced."""
    servers = _servers(request)
    if servers is not None:
        servers.forget(person_of(request).pk)


def _servers(request: HttpRequest) -> Servers | None:
    runtime: Runtime | None = getattr(request, "scope", {}).get("state", {}).get("runtime")
    return None if runtime is None else runtime.servers


def _asked(servers: Servers, work: Coroutine[Any, Any, T], otherwise: T, *, seconds: float = ANSWER_SECONDS) -> T:
    """What the loop of the servers gives; `otherwise` when it takes too long."""
    waiting = asyncio.run_coroutine_threadsafe(work, servers.loop)
    try:
        return waiting.result(seconds)
    except TimeoutError:
        waiting.cancel()
        logger.warning("mcp_servers_did_not_answer")
        return otherwise
