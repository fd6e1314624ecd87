"""The MCP SDK, in one file: a connection opened, its tools listed, its tools called.

Entering and leaving `opened` belongs into one task. What goes wrong comes out as a ServerFault.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, CallToolResult, ToolListChangedNotification, jsonrpc_message_adapter
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from chat.mcp.errors import BadAnswer, Ended, NotHeard, ServerFault, Unavailable
from chat.mcp.pipes import MOST_BYTES, Pipes, speaking
from chat.mcp.schemas import plain_schema
from chat.mcp.specs import Address, Process, Way
from klerai.http import vendor_client

MOST_PAGES = 20
MOST_TOOLS = 128
HTTP_SILENCE_SECONDS = 300.0
_REFUSED = {401, 403}
_UNHEARD = {400, 404}  # how servers say that they do not know a session, which is 404 by the protocol
_OF_HTTP = {INTERNAL_ERROR, INVALID_REQUEST}
_STAND_INS = {"Server returned an error response", "Session terminated"}  # the SDK's words for an HTTP error
_US = Implementation(name="KlerAI", version="0.1.0")


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as its server lists it, its schema in a form to be used; hints it does not give are None."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    is_read_only: bool | None
    is_open_world: bool | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call gave: its blocks and its structured content as the protocol's JSON."""

    is_error: bool
    blocks: tuple[Mapping[str, Any], ...]
    structured: Any = None


@dataclass(frozen=True, slots=True)
class Session:
    """An open connection. Several calls may run at once."""

    _client: Client
    _seen: _Seen

    async def tools(self) -> tuple[Listed, ...]:
        """All pages, up to a number of tools no model could choose from."""
        with _translated(self._seen):
            found: list[Any] = []
            cursor: str | None = None
            for _ in range(MOST_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) >= MOST_TOOLS:
                    break
            return await asyncio.to_thread(_all_listed, found[:MOST_TOOLS])  # schemas take milliseconds each

    async def call(self, name: str, arguments: Mapping[str, Any], tell: Callable[[str], None]) -> Reply:
        async def told(progress: float, total: float | None, message: str | None) -> None:
            tell(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"))

        with _translated(self._seen):
            result: CallToolResult = await self._client.call_tool(name, dict(arguments), progress_callback=told)
            blocks = tuple(block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content)
            return Reply(bool(result.is_error), blocks, result.structured_content)

    async def watch(self, on_change: Callable[[], None]) -> None:
        """Say when the list of tools changes, where the protocol of this connection has to be asked for that."""
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with self._client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    on_change()


@asynccontextmanager
async def opened(way: Way, *, on_change: Callable[[], None], on_end: Callable[[], None]) -> AsyncGenerator[Session]:
    """A session with the server at the end of `way`. Raises ServerFault."""

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_change()

    seen = _Seen()
    with _translated(seen, way):
        async with AsyncExitStack() as stack:
            match way:
                case Process():
                    transport: Any = _over_pipes(way, on_end)
                case Address():
                    headers = dict(way.headers)
                    http = vendor_client(way.url, timeout_seconds=HTTP_SILENCE_SECONDS, headers=headers)
                    http.event_hooks = {"response": [seen.response]}
                    transport = streamable_http_client(way.url, http_client=await stack.enter_async_context(http))
            client = Client(transport, mode="auto", cache=None, message_handler=heard, client_info=_US)
            yield Session(await stack.enter_async_context(client), seen)


@asynccontextmanager
async def _over_pipes(way: Process, on_end: Callable[[], None]) -> AsyncGenerator[Any]:
    async with speaking(way, read=_message, write=_line, on_end=on_end) as pipes:
        both: Pipes = pipes
        yield both.incoming, both.outgoing


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _line(message: SessionMessage) -> bytes:
    return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _all_listed(tools: list[Any]) -> tuple[Listed, ...]:
    return tuple(map(_listed, tools))


def _listed(tool: Any) -> Listed:
    hints = tool.annotations
    return Listed(
        name=tool.name,
        title=tool.title or (hints.title if hints else None) or "",
        description=tool.description or "",
        schema=plain_schema(tool.input_schema),
        is_read_only=hints.read_only_hint if hints else None,
        is_open_world=hints.open_world_hint if hints else None,
    )


class _Capped(httpx2.AsyncByteStream):
    """A body that is read up to a size."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for piece in self._body:
            size += len(piece)
            if size > MOST_BYTES:
                raise httpx2.StreamError(f"it has more than {MOST_BYTES:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class _Seen:
    """The last HTTP error a server answered with, which the SDK does not tell."""

    def __init__(self) -> None:
        self.error = 0

    async def response(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            self.error = response.status_code
        if response.headers.get("content-type", "").lower().startswith("application/json"):
            response.stream = _Capped(response.stream)


class _translated:
    """The SDK's errors as ours; `way` is given while the connection is opened."""

    def __init__(self, seen: _Seen, way: Way | None = None) -> None:
        self._seen = seen
        self._way = way

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        first = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if first is error and isinstance(error, ServerFault):
            return
        if isinstance(first, ServerFault):
            raise first from error
        if isinstance(error, Exception) and isinstance(first, Exception):
            fault = self._calling(first) if self._way is None else self._opening(first, self._way)
            if fault is not None:
                raise fault from error

    def _opening(self, error: Exception, way: Way) -> ServerFault | None:
        match error, way:
            case ((FileNotFoundError() | PermissionError() | NotADirectoryError()), Process(command)):
                return Unavailable(f"The command “{command}” cannot be run on this machine.")
            case ((httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.UnsupportedProtocol()), Address()):
                return Unavailable(f"Nothing answers at {way.host}.")
            case httpx2.HTTPError(), Address():
                return Unavailable(f"The connection to {way.host} broke.")
            case MCPError(), Address() if self._seen.error in _REFUSED:
                return Unavailable(f"It refused the key it was given (HTTP {self._seen.error}).")
            case MCPError(), Address() if self._seen.error >= 400:
                return Unavailable(f"{way.host} answers with an error (HTTP {self._seen.error}).")
            case MCPError(), Process() if error.code == CONNECTION_CLOSED:
                return Unavailable("It ended while it was started. The log has what it said last.")
            case ((MCPError() | ValidationError() | RuntimeError()), _):
                return Unavailable(f"It does not speak MCP as KlerAI does: {str(error)[:200]}")
        return None

    def _calling(self, error: Exception) -> ServerFault | None:
        match error:
            case MCPError() if error.code in _OF_HTTP and error.message in _STAND_INS and self._seen.error in _UNHEARD:
                return NotHeard()
            case MCPError() if error.message in _STAND_INS:
                return BadAnswer(f"It answered with HTTP {self._seen.error}.")
            case MCPError() if error.code == CONNECTION_CLOSED:
                return NotHeard() if self._seen.error in _UNHEARD and "session" in error.message.lower() else Ended()
            case MCPError():
                return BadAnswer(error.message[:2_000])
            case ValidationError():
                return BadAnswer("What it answered does not keep to the protocol.")
            case RuntimeError():
                return BadAnswer("What it answered does not fit what it says its answers are like.")
            case httpx2.HTTPError():
                return Ended()
        return None
