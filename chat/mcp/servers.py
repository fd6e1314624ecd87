"""The servers of this process: which there are for a person, their connections, and the tools they give a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import DatabaseError

from chat.mcp.configuration import McpSettings
from chat.mcp.connection import IDLE_SECONDS, START_SECONDS, Connection, State, load_sdk
from chat.mcp.github import docker_has_image, github_spec
from chat.mcp.rows import added_servers
from chat.mcp.specs import GITHUB, Address, ServerSpec
from chat.mcp.tokens import token_of, tokens_of
from chat.mcp.tools import tools_of
from chat.tools.base import Tool
from klerai.database import in_database

logger = structlog.get_logger(__name__)
PATIENCE_SECONDS = 3.0
ROUND_SECONDS = 10.0
DOCKER_KNOWN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Key:
    """A connection: everybody's, or with a person's own token that person's alone."""

    name: str
    person_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A server as the setup page shows it to a person."""

    name: str
    where: str
    state: State
    tools: int
    error: str
    is_own: bool


class Servers:
    """Connections by need, made inside the loop that serves.

    One that is down or slow costs a run at most `patience` seconds, and only while it is new.
    """

    def __init__(
        self,
        settings: McpSettings,
        *,
        patience: float = PATIENCE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._settings = settings
        self._patience = patience
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._round_seconds = round_seconds
        self._connections: dict[Key, Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._docker: tuple[bool, float] | None = None
        self._rounds: asyncio.Task[None] | None = None
        self.loop = asyncio.get_running_loop()
        if settings.servers or settings.github.token:
            self._importing = asyncio.create_task(load_sdk())  # while nobody waits for it

    async def tools_for(self, person_id: UUID) -> dict[str, Tool]:
        """The tools this person's run may use, in the order of their names; of a server that is away there are none."""
        connections = await self._connections_for(person_id)
        await asyncio.gather(*map(self._begin, connections.values()))
        found: dict[str, Tool] = {}
        for connection in connections.values():
            if not connection.is_away:
                found.update({tool.name: tool for tool in tools_of(connection) if tool.name not in found})
        return dict(sorted(found.items()))

    async def statuses(self, person_id: UUID) -> list[Status]:
        """Without starting anything."""
        return [_status(key, connection) for key, connection in (await self._connections_for(person_id)).items()]

    async def check(self, name: str, person_id: UUID, *, seconds: float) -> Status | None:
        """Try a server now, whatever became of it before; None when there is none of that name for the person."""
        for key, connection in (await self._connections_for(person_id)).items():
            if key.name == name:
                await connection.check()
                await connection.settle(seconds)
                return _status(key, connection)
        return None

    def forget(self, person_id: UUID) -> None:
        """Close the person's own session now. May be called from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._drop, Key(GITHUB, person_id))

    async def aclose(self) -> None:
        if self._rounds is not None:
            self._rounds.cancel()
        for key in list(self._connections):
            self._drop(key)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _begin(self, connection: Connection) -> None:
        """Start what was never started, and wait for it a little, counted from its start."""
        if connection.state is State.RESTING and connection.tools:
            return  # its first call starts it
        is_new = connection.state is State.RESTING
        connection.start()
        if is_new or (connection.state is State.STARTING and not connection.error):
            await connection.settle(self._patience - (asyncio.get_running_loop().time() - connection.began_at))

    async def _connections_for(self, person_id: UUID) -> dict[Key, Connection]:
        if self._rounds is None:
            self._rounds = asyncio.create_task(self._go_round())
        try:
            shared, token = await in_database(self._known, person_id)
        except DatabaseError:
            logger.exception("mcp_servers_unknown")
            return {}
        wanted = {Key(spec.name): spec for spec in shared}
        if token:
            wanted.pop(Key(GITHUB), None)
            wanted[Key(GITHUB, person_id)] = await self._github(token)
        elif self._settings.github.token and Key(GITHUB) not in wanted:
            wanted[Key(GITHUB)] = await self._github(self._settings.github.token)
        self._drop_stale(shared, person_id, has_token=bool(token))
        return {key: self._connection(key, spec) for key, spec in wanted.items()}

    def _known(self, person_id: UUID) -> tuple[list[ServerSpec], str]:
        """The servers for everybody, the file's before those of the admin, and the person's own token."""
        names = {spec.name for spec in self._settings.servers}
        added = added_servers(may_write_github=self._settings.github.may_write)
        return [*self._settings.servers, *(spec for spec in added if spec.name not in names)], token_of(person_id)

    async def _github(self, token: str) -> ServerSpec:
        return github_spec(token, self._settings.github, with_docker=await self._has_docker())

    async def _has_docker(self) -> bool:
        if self._settings.github.url:
            return False
        now = asyncio.get_running_loop().time()
        if self._docker is None or now > self._docker[1]:
            self._docker = (await docker_has_image(), now + DOCKER_KNOWN_SECONDS)
        return self._docker[0]

    def _connection(self, key: Key, spec: ServerSpec) -> Connection:
        there = self._connections.get(key)
        if there is not None and there.spec == spec:
            return there
        self._drop(key)
        made = Connection(spec, idle_seconds=self._idle_seconds, start_seconds=self._start_seconds)
        self._connections[key] = made
        return made

    def _drop_stale(self, shared: list[ServerSpec], person_id: UUID, *, has_token: bool) -> None:
        names = {spec.name for spec in shared}
        for key in list(self._connections):
            is_mine_no_more = key.person_id == person_id and not has_token
            is_gone = key.person_id is None and key.name not in names and key.name != GITHUB
            if is_mine_no_more or is_gone:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _go_round(self) -> None:
        """Close the sessions of people whose token was removed or replaced through another process."""
        while True:
            await asyncio.sleep(self._round_seconds)
            own = {key.person_id: key for key in self._connections if key.person_id is not None}
            if not own:
                continue
            try:
                tokens = await in_database(tokens_of, list(own))
            except DatabaseError:
                logger.exception("mcp_round_missed")
                continue
            for person_id, key in own.items():
                if not tokens.get(person_id):
                    self._drop(key)


def _status(key: Key, connection: Connection) -> Status:
    spec = connection.spec
    where = spec.way.host if isinstance(spec.way, Address) else spec.way.command.rpartition("/")[2]
    tools, is_own = len(tools_of(connection)), key.person_id is not None
    return Status(spec.name, where, connection.state, tools, connection.error, is_own)


def tools_with(built_in: Mapping[str, Tool], found: Mapping[str, Tool]) -> dict[str, Tool]:
    """Ours first, so that what a model reads begins the same whichever servers there are."""
    return {**built_in, **{name: tool for name, tool in found.items() if name not in built_in}}
