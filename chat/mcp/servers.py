"""The servers of this process: which there are for a person, their connections, and the tools they give a run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import DatabaseError

from chat.mcp.configuration import McpSettings
from chat.mcp.connection import IDLE_SECONDS, START_SECONDS, Connection, State
from chat.mcp.github import Docker, github_spec
from chat.mcp.rows import added_servers
from chat.mcp.specs import GITHUB, Address, Process, ServerSpec
from chat.mcp.tokens import is_any_token, token_of, tokens_of
from chat.mcp.tools import tools_of
from chat.tools.base import Tool
from klerai.database import in_database

logger = structlog.get_logger(__name__)
PATIENCE_SECONDS = 3.0
LOOK_SECONDS = 3.0


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


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the database says: the admin's servers, whether anybody has a token, and which of some people have none."""

    added: list[ServerSpec]
    is_any_token: bool
    without_token: frozenset[UUID]


class Servers:
    """Connections of this process, made inside the loop that serves.

    What is configured is looked up in the background every few seconds, and what everybody may use is started at once,
    so that a question finds it ready and asks nobody whether there is any. One that is down or slow costs a run at most
    `patience` seconds, and only while it is new. A person's own session starts with their first question.
    """

    def __init__(
        self,
        settings: McpSettings,
        *,
        patience: float = PATIENCE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._settings = settings
        self._patience = patience
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._look_seconds = look_seconds
        self._shared: dict[Key, ServerSpec] = {}
        self._may_have_tokens = True
        self._connections: dict[Key, Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._docker = Docker()
        self._one_look = asyncio.Lock()
        self._has_looked = asyncio.Event()
        self._told = 0
        self.loop = asyncio.get_running_loop()
        self._looking = asyncio.create_task(self._look_forever())

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
        """As things are now, without waiting for any server."""
        await self._look()
        return [_status(key, connection) for key, connection in (await self._connections_for(person_id)).items()]

    async def check(self, name: str, person_id: UUID, *, seconds: float) -> Status | None:
        """Try a server now, whatever became of it before; None when there is none of that name for the person."""
        await self._look()
        for key, connection in (await self._connections_for(person_id)).items():
            if key.name == name:
                await connection.check()
                await connection.settle(seconds)
                return _status(key, connection)
        return None

    def forget(self, person_id: UUID) -> None:
        """Close the person's own session now. May be called from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._forget, person_id)

    async def aclose(self) -> None:
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        for key in list(self._connections):
            self._drop(key)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _begin(self, connection: Connection) -> None:
        """Start what was never started, and wait for it a little, counted from its start."""
        if connection.state is State.RESTING and connection.is_known:
            return  # its first call starts it
        is_new = connection.state is State.RESTING
        connection.start()
        if is_new or (connection.state is State.STARTING and not connection.error):
            await connection.settle(self._patience - connection.seconds_taken)

    async def _connections_for(self, person_id: UUID) -> dict[Key, Connection]:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._has_looked.wait()
        wanted, own = dict(self._shared), Key(GITHUB, person_id)
        try:
            token = await in_database(token_of, person_id) if self._may_have_tokens else ""
        except DatabaseError:
            logger.exception("mcp_token_unknown")
            return {}
        if token:
            wanted.pop(Key(GITHUB), None)
            spec = await self._github(token)
            wanted |= {} if spec is None else {own: spec}
        else:
            self._drop(own)
        return {key: self._connection(key, spec) for key, spec in wanted.items()}

    async def _look_forever(self) -> None:
        while True:
            await self._look()
            self._has_looked.set()
            await asyncio.sleep(self._look_seconds)

    async def _look(self) -> None:
        """See what is configured; where that cannot be read, what was known stays."""
        async with self._one_look:
            told = self._told
            people = [key.person_id for key in self._connections if key.person_id is not None]
            try:
                rows = await in_database(_rows, people, may_write_github=self._settings.github.may_write)
            except Exception:
                logger.exception("mcp_servers_unknown")
                return
            self._may_have_tokens = rows.is_any_token or told != self._told
            self._shared = await self._for_everybody(rows.added)
            self._follow(rows)

    def _follow(self, rows: _Rows) -> None:
        """Start what is new for everybody; close what is no more, also where another process removed it."""
        for key in list(self._connections):
            if key not in self._shared if key.person_id is None else key.person_id in rows.without_token:
                self._drop(key)
        for key, spec in self._shared.items():
            connection = self._connection(key, spec)
            if not connection.is_known:
                connection.start()

    async def _for_everybody(self, added: Iterable[ServerSpec]) -> dict[Key, ServerSpec]:
        """The file's servers, those of the admin beside them, and GitHub by the operator's token."""
        shared = {Key(spec.name): spec for spec in self._settings.servers}
        for spec in added:
            shared.setdefault(Key(spec.name), spec)
        token = self._settings.github.token
        if token and Key(GITHUB) not in shared and (github := await self._github(token)) is not None:
            shared[Key(GITHUB)] = github
        return shared

    async def _github(self, token: str) -> ServerSpec | None:
        """None while Docker does not say whether it has the image."""
        with_docker: bool | None = False
        if not self._settings.github.url:
            with_docker = await self._docker.has_image(seconds=self._patience)
        return None if with_docker is None else github_spec(token, self._settings.github, with_docker=with_docker)

    def _connection(self, key: Key, spec: ServerSpec) -> Connection:
        there = self._connections.get(key)
        if there is not None and there.spec == spec:
            return there
        self._drop(key)
        made = Connection(spec, idle_seconds=self._idle_seconds, start_seconds=self._start_seconds)
        self._connections[key] = made
        return made

    def _drop(self, key: Key) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _forget(self, person_id: UUID) -> None:
        self._told += 1
        self._may_have_tokens = True
        self._drop(Key(GITHUB, person_id))


def _rows(people: Collection[UUID], *, may_write_github: bool) -> _Rows:
    added = added_servers(may_write_github=may_write_github)
    tokens = tokens_of(people) if people else {}
    return _Rows(added, is_any_token(), frozenset(person for person in people if not tokens.get(person)))


def _status(key: Key, connection: Connection) -> Status:
    spec = connection.spec
    match spec.way:
        case Address(host=where):
            pass
        case Process(command):
            where = f"the program {command.rpartition('/')[2]}"
    tools, is_own = len(tools_of(connection)), key.person_id is not None
    return Status(spec.name, where, connection.state, tools, connection.error, is_own)


def tools_with(built_in: Mapping[str, Tool], found: Mapping[str, Tool]) -> dict[str, Tool]:
    """Ours first, so that what a model reads begins the same whichever servers there are."""
    return {**built_in, **{name: tool for name, tool in found.items() if name not in built_in}}
