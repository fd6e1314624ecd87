"""A TCP proxy that spoils connections: late, in slices, cut off, reset, or not there at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

PIECE = 65_536
FAREWELL_SECONDS = 1
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class ResetPeer:
    """The connection is reset once that many bytes of the answer went through."""

    after_bytes: int


@dataclass(frozen=True, slots=True)
class LimitData:
    """The connection is closed in good order once that many bytes of the answer went through."""

    max_bytes: int


@dataclass(frozen=True, slots=True)
class ResetSoon:
    """The connection is reset that long after it was opened, wherever it stands."""

    after_seconds: float


@dataclass(frozen=True, slots=True)
class Slicer:
    """The answer comes in slices with a pause between them, and is reset after a number of bytes if one is given."""

    slice_bytes: int
    pause_seconds: float
    reset_after_bytes: int | None = None


Toxic = ResetPeer | LimitData | ResetSoon | Slicer


class ToxicProxy:
    """Stands before a server. `choose` says what happens to each new connection, None for nothing."""

    def __init__(self, target: str, choose: Callable[[], Toxic | None]) -> None:
        parts = urlsplit(target)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._choose = choose
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="toxic proxy")
        self._jam: list[socket.socket] = []
        self.cuts = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self.clear()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def jam(self) -> None:
        """From now on connections open no more: the queue of the port is full, so that the caller waits."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        full = socket.socket()
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(("127.0.0.1", self.port))
        full.listen(0)
        self._jam.append(full)
        for _ in range(2):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", self.port))
            self._jam.append(waiting)

    def clear(self) -> None:
        """The opposite of `jam`."""
        while self._jam:
            self._jam.pop().close()

    def unjam(self) -> None:
        self.clear()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0.05)  # what was aborted closes its socket in the loop's next rounds

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._carry(reader, writer)
        writer.close()  # also when there was nobody to carry to
        self._connections.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        toxic = self._choose()
        there, back = await asyncio.open_connection(*self._target)
        seconds = toxic.after_seconds if isinstance(toxic, ResetSoon) else None
        pumps = [asyncio.create_task(_pump(reader, back)), asyncio.create_task(_answer(there, writer, toxic))]
        try:
            done, _ = await asyncio.wait(pumps, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            is_cut = not done or (pumps[1].done() and not pumps[1].cancelled() and pumps[1].exception() is None)
            if is_cut and toxic is not None and (not done or pumps[1].result()):
                self.cuts += 1
                if not isinstance(toxic, LimitData):
                    _reset(writer)
        finally:
            for pump in pumps:
                pump.cancel()
            writer.close()
            back.close()
            try:
                await asyncio.gather(*pumps, return_exceptions=True)
                await _farewell(writer)
                await _farewell(back)
            except asyncio.CancelledError:
                writer.transport.abort()
                back.transport.abort()
                raise


async def _farewell(writer: asyncio.StreamWriter) -> None:
    """Wait until what is still to be sent is out and the connection gone."""
    with contextlib.suppress(OSError):
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                await writer.wait_closed()
        except TimeoutError:
            writer.transport.abort()
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, toxic: Toxic | None) -> bool:
    """Carry the answer until it ends or is cut; whether it was cut."""
    left, piece_bytes, pause_seconds = _limits(toxic)
    while piece := await reader.read(piece_bytes if left is None else max(1, min(piece_bytes, left))):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        writer.write(piece)
        await writer.drain()
        if left == 0:
            return True
        if pause_seconds:
            await asyncio.sleep(pause_seconds)
    return False


def _limits(toxic: Toxic | None) -> tuple[int | None, int, float]:
    match toxic:
        case ResetPeer(limit) | LimitData(limit):
            return limit, PIECE, 0
        case Slicer(slice_bytes, pause_seconds, limit):
            return limit, slice_bytes, pause_seconds
        case _:
            return None, PIECE, 0


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST in place of FIN."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()


@contextmanager
def toxic_proxy(target: str, choose: Callable[[], Toxic | None] = lambda: None) -> Iterator[ToxicProxy]:
    proxy = ToxicProxy(target, choose)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
