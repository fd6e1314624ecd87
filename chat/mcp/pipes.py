"""A program of this machine as a peer: a message a line on its standard input and output, and its end made sure of."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from chat.mcp.specs import Process

MOST_BYTES = 8_000_000
CLOSING_SECONDS = 2.0
_FLUSH_SECONDS = 0.5
_POLL_SECONDS = 0.02
_TAIL_BYTES = 2_000
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pipes:
    """Messages from the program, and messages to it."""

    incoming: MemoryObjectReceiveStream[Any]
    outgoing: MemoryObjectSendStream[Any]


@asynccontextmanager
async def speaking(
    way: Process, *, read: Callable[[bytes], Any], write: Callable[[Any], bytes], on_end: Callable[[], None]
) -> AsyncGenerator[Pipes]:
    """The running program. Whatever happens inside, it and what it started have ended afterwards.

    `on_end` is called when it closes its output or sends a message larger than is read. It inherits nothing of our
    settings. Raises OSError when it cannot be started.
    """
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    program = await asyncio.create_subprocess_exec(
        way.command,
        *way.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**kept, **way.env},
        cwd=way.folder,
        start_new_session=True,
        limit=MOST_BYTES,
    )
    arriving, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, leaving = anyio.create_memory_object_stream[Any](0)
    tail = bytearray()
    reading = asyncio.create_task(_read(program, arriving, read, on_end))
    writing = asyncio.create_task(_write(program, leaving, write))
    listening = asyncio.create_task(_listen(program, tail))
    try:
        yield Pipes(incoming, outgoing)
    finally:
        incoming.close()
        outgoing.close()
        ended_by_itself = program.returncode
        try:
            await _end(program, writing)
        finally:
            _signal(program, signal.SIGKILL)  # what it started may still be there
            for task in (reading, writing, listening):
                task.cancel()
            for stream in (arriving, leaving):
                stream.close()
            _close(program)
            if ended_by_itself:
                logger.warning("mcp_server_ended", code=ended_by_itself, said=tail.decode("utf-8", "replace"))


async def _read(
    program: asyncio.subprocess.Process,
    arriving: MemoryObjectSendStream[Any],
    read: Callable[[bytes], Any],
    on_end: Callable[[], None],
) -> None:
    assert program.stdout is not None
    with arriving, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, ValueError):
        while line := await program.stdout.readline():  # a line beyond the limit is a ValueError
            if line.strip():
                await arriving.send(read(line))
    on_end()


async def _write(
    program: asyncio.subprocess.Process, leaving: MemoryObjectReceiveStream[Any], write: Callable[[Any], bytes]
) -> None:
    assert program.stdin is not None
    with leaving, suppress(OSError):
        async for message in leaving:
            program.stdin.write(write(message))
            await program.stdin.drain()


async def _listen(program: asyncio.subprocess.Process, tail: bytearray) -> None:
    """Keep the end of what it says to nobody, for the log."""
    assert program.stderr is not None
    with suppress(OSError):
        while said := await program.stderr.read(4096):
            tail += said
            del tail[:-_TAIL_BYTES]


async def _end(program: asyncio.subprocess.Process, writing: asyncio.Task[None]) -> None:
    """Close its input, which asks it to end; then ask by signal. Docker passes both on to its container."""
    await asyncio.wait({writing}, timeout=_FLUSH_SECONDS)
    if program.stdin is not None:
        program.stdin.close()
    if not await _has_ended(program):
        _signal(program, signal.SIGTERM)
        await _has_ended(program)


async def _has_ended(program: asyncio.subprocess.Process) -> bool:
    """By its code: waiting for it would also wait for what it left behind."""
    for _ in range(round(CLOSING_SECONDS / _POLL_SECONDS)):
        if program.returncode is not None:
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return program.returncode is not None


def _signal(program: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, number)


def _close(program: asyncio.subprocess.Process) -> None:
    transport = getattr(program, "_transport", None)  # nothing else closes pipes that a grandchild still holds
    if transport is not None:
        with suppress(PermissionError):
            transport.close()
