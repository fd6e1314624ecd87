"""The log of what happens in runs: one writer a process, any number of viewers.

An event is a row and a frame. Runs of this process put their events here; the writer gathers what is new every 50 ms
and writes it in one statement that is heartbeat, fence and sequence at once. Viewers are shown only what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from uuid import UUID

import orjson
import structlog
from django.db import InterfaceError, OperationalError

from chat.eventrows import Batch, Entry, Standing, keep_in_memory, read_after, write
from chat.events import ContentChunk, Event, Logged
from chat.models import Run
from chat.tools.base import ToolRecord
from chat.wakeups import Wakeups
from klerai.database import in_database
from klerai.failpoints import failpoint

FRAME_SECONDS = 0.05
KEPT_SECONDS = 30.0
logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Channel:
    """A run of this process: what is waiting to be written and what viewers may see.

    `on_lost` is called when the fence shut the run out, `on_stop` when a person asked for its end, `on_broken` when
    something it said cannot be stored.
    """

    run: Run
    on_lost: Callable[[], None]
    on_stop: Callable[[], None]
    on_broken: Callable[[], None]
    last_seq: int = 0
    waiting: list[Entry] = field(default_factory=list)
    written: list[Logged] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    has_words: bool = False
    is_closed: bool = False

    @property
    def run_key(self) -> UUID:
        return self.run.pk

    def show(self, logged: list[Logged]) -> None:
        self.written.extend(logged)
        self.changed.set()
        self.changed = asyncio.Event()


class EventLog:
    """The writer of this process and the way to read any run's log."""

    def __init__(self, *, lease_seconds: int, wakeups: Wakeups) -> None:
        self.lease_seconds = lease_seconds
        self._heartbeat_seconds = min(1.0, lease_seconds / 4)
        self._wakeups = wakeups
        self._channels: dict[UUID, Channel] = {}
        self._live: dict[UUID, Channel] = {}
        self._work = asyncio.Event()
        self._urgent = asyncio.Event()
        self._next_heartbeat = 0.0

    def open(self, channel: Channel) -> None:
        self._channels[channel.run_key] = self._live[channel.run_key] = channel

    def append(self, channel: Channel, event: Event, record: ToolRecord | None = None) -> None:
        """Give the event its place. Words that wait together become one event."""
        if channel.is_closed:
            return
        last = channel.waiting[-1] if channel.waiting else None
        if last is not None and last.joins(event):
            last.pieces.append(event.text)  # type: ignore[union-attr]
            return
        channel.last_seq += 1
        channel.waiting.append(Entry.of(channel.last_seq, event, record))
        is_first_word = isinstance(event, ContentChunk) and not channel.has_words
        channel.has_words = channel.has_words or is_first_word
        if is_first_word:
            self._urgent.set()
        self._work.set()

    async def flush(self, channel: Channel) -> None:
        """Return when everything appended so far is written, or the run is lost."""
        while channel.waiting and not channel.is_closed:
            changed = channel.changed
            self._urgent.set()
            self._work.set()
            await changed.wait()

    def close(self, channel: Channel, terminal: Logged | None) -> None:
        """Show the last event, which its own transaction has written; viewers can still read the run for a while."""
        channel.waiting.clear()
        channel.is_closed = True
        self._live.pop(channel.run_key, None)
        channel.show([terminal] if terminal else [])
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self._channels.pop, channel.run_key, None)

    async def aclose(self) -> None:
        """Close what carries the word to other processes."""
        await self._wakeups.aclose()

    async def write_forever(self) -> None:
        """The writer. It ends only by being cancelled; a database that is away is waited for."""
        pause = 0.0
        while True:
            if await _set_within(self._work, self._heartbeat_seconds):
                await _set_within(self._urgent, FRAME_SECONDS)
            try:
                await self._write_round()
                pause = 0.0
            except Exception:
                logger.exception("event_log_write_failed", waiting=len(self._live))
                pause = min(1.0, pause * 2 or 0.05)
                await asyncio.sleep(pause)

    async def _write_round(self) -> None:
        self._work.clear()
        self._urgent.clear()
        channels = self._due()
        if channels:
            news = [channel.run_key for channel in channels if channel.waiting]
            await self._write(channels)
            await self._wakeups.notify(news)

    async def _write(self, channels: list[Channel]) -> None:
        """Write what waits. What the database will not take is one run's fault: the others go on without it."""
        try:
            await self._write_together(channels)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("event_log_refused", runs=len(channels))
            if len(channels) == 1:
                channels[0].waiting.clear()
                channels[0].show([])
                channels[0].on_broken()
                return
            for channel in channels:
                await self._write([channel])

    async def _write_together(self, channels: list[Channel]) -> None:
        taken = [(channel, len(channel.waiting)) for channel in channels]
        batch = Batch(
            lease_seconds=self.lease_seconds,
            runs=[(channel.run_key, channel.run.attempt, channel.last_seq) for channel in channels],
            entries=[
                (channel.run_key, entry.sealed())
                for channel in channels
                if not channel.run.is_temporary
                for entry in channel.waiting
            ],
        )
        failpoint("before_write")
        standing = await in_database(write, batch)
        failpoint("after_write")
        for channel, count in taken:
            self._apply(channel, count, standing)

    def _due(self) -> list[Channel]:
        """The runs with news, or all of them when it is time for a heartbeat."""
        now = asyncio.get_running_loop().time()
        if now < self._next_heartbeat:
            return [channel for channel in self._live.values() if channel.waiting]
        self._next_heartbeat = now + self._heartbeat_seconds
        return list(self._live.values())

    def _apply(self, channel: Channel, count: int, standing: dict[UUID, Standing]) -> None:
        if channel.is_closed:
            return
        match standing.get(channel.run_key):
            case None:
                self.close(channel, None)
                channel.on_lost()
            case Standing(must_stop=must_stop):
                done, channel.waiting = channel.waiting[:count], channel.waiting[count:]
                if done and channel.run.is_temporary:
                    keep_in_memory(channel.run, done)
                if done:
                    channel.show([entry.logged for entry in done])
                if must_stop:
                    channel.on_stop()

    async def follow(self, run_key: UUID, *, after: int = 0) -> AsyncGenerator[list[Logged]]:
        """The events behind `after`, in order and once, until the terminal one."""
        seq = after
        while True:
            changed: asyncio.Event | None = None
            channel = self._channels.get(run_key)
            if channel is not None:
                changed = channel.changed
                news = channel.written[seq:]
            else:
                news, is_over = await in_database(read_after, run_key, seq)
                if is_over and not news:
                    return
            if news:
                seq = news[-1].seq
                yield news
                if news[-1].is_terminal:
                    return
            elif channel is not None and channel.is_closed and changed is not None:
                self._channels.pop(run_key, None)
            elif changed is not None:
                await changed.wait()
            else:
                await self._wakeups.wait(run_key)


def frame(run_id: UUID, logged: Logged) -> bytes:
    """The JSON a browser gets, the same over WebSocket and in a terminal."""
    return orjson.dumps({"seq": logged.seq, "run_id": str(run_id), "type": logged.type, "data": logged.data})


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
