"""One server's connection: opened, used and closed by one task of its own, which calls reach through a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from enum import Enum, StrEnum, auto
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog

from chat.mcp.errors import BadAnswer, Ended, NotHeard, ServerFault, Unavailable
from chat.mcp.pending import Pending
from chat.mcp.specs import ServerSpec

if TYPE_CHECKING:
    from chat.mcp.session import Listed, Reply, Session

logger = structlog.get_logger(__name__)
IDLE_SECONDS = 300.0
START_SECONDS = 30.0
STEADY_SECONDS = 30.0
LEAST_SECONDS_BETWEEN_LISTS = 0.2
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_WAIT_SECONDS = 4.0


class State(StrEnum):
    """What the setup page says of a server."""

    RESTING = "resting"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


class _News(Enum):
    ENDED = auto()
    CHANGED = auto()
    CLOSE = auto()


class Connection:
    """Starts when it is asked for, rests when nobody needs it, and comes back after a death, each time a little later.

    `tools` is what the server listed last, once it `is_known`; that stays so while the connection rests.
    """

    def __init__(
        self, spec: ServerSpec, *, idle_seconds: float = IDLE_SECONDS, start_seconds: float = START_SECONDS
    ) -> None:
        self.spec = spec
        self.state = State.RESTING
        self.tools: tuple[Listed, ...] = ()
        self.is_known = False
        self.error = ""
        self._began_at: float | None = None
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._inbox: asyncio.Queue[Pending | _News] = asyncio.Queue()
        self._settled = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._was_ready = False
        self._calling = 0
        self._is_stale = False
        self._listing = asyncio.Lock()
        self._is_closed = False

    @property
    def seconds_taken(self) -> float:
        """How long it has been starting; what we do ourselves before that is not the server's."""
        return 0.0 if self._began_at is None else _now() - self._began_at

    @property
    def is_paused(self) -> bool:
        """Whether it has failed and is not to be tried yet."""
        return self._owner is None and _now() < self._not_before

    @property
    def is_away(self) -> bool:
        """Whether its tools are of no use now: it could not be started, or has died too often to be waited for."""
        return self.state is State.FAILED and (not self._was_ready or self._pause_left() > LONGEST_WAIT_SECONDS)

    def start(self, *, at_once: bool = False, has_time: bool = False) -> None:
        """Begin to connect, unless that is under way, or it is too early after a failure.

        For what `has_time` a server that only died lately is started when its pause is over.
        """
        waits = has_time and not self.is_away
        if self._owner is None and not self._is_closed and (at_once or waits or not self.is_paused):
            pause = 0.0 if at_once else self._pause_left()
            self.state = State.STARTING
            self._began_at = None
            self._settled.clear()
            self._owner = asyncio.create_task(self._own(pause), name=f"mcp {self.spec.name}")

    async def settle(self, seconds: float) -> None:
        """Wait until it is ready or has failed, at most that long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Callable[[str], None]) -> Reply:
        """What the tool gives. Cancelling tells the server too. Raises ServerFault."""
        self.start(has_time=True)
        if self._owner is None:
            raise Unavailable("It was removed." if self._is_closed else self.error)
        call = Pending(name, arguments, progress, asyncio.get_running_loop().create_future())
        self._inbox.put_nowait(call)
        try:
            return await call.answer
        except asyncio.CancelledError:
            call.leave()
            raise

    async def check(self) -> None:
        """Connect, or list the tools anew: what the Test button does."""
        if self.state is State.READY:
            self._settled.clear()
            self._inbox.put_nowait(_News.CHANGED)
        self.start(at_once=True)

    async def close(self) -> None:
        """For good; calls under way fail."""
        self._is_closed = True
        owner = self._owner
        if owner is not None:
            self._inbox.put_nowait(_News.CLOSE)
            if self.state is State.STARTING:
                owner.cancel()
            await asyncio.wait({owner})

    async def _own(self, pause: float) -> None:
        self._is_stale = False
        fault: ServerFault | None = None
        ready_at: float | None = None
        try:
            await asyncio.sleep(pause)
            sdk = await load_sdk()
            self._began_at = _now()
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_seconds):
                    tell = self._inbox.put_nowait
                    session = await stack.enter_async_context(
                        sdk.opened(
                            self.spec.way, on_change=lambda: tell(_News.CHANGED), on_end=lambda: tell(_News.ENDED)
                        )
                    )
                    self.tools, self.is_known = await session.tools(), True
                ready_at = _now()
                self._is_ready()
                await self._serve(session)
        except TimeoutError:
            fault = Unavailable(f"It was not ready within {self._start_seconds:g} seconds.")
        except ServerFault as error:
            fault = error
        except Exception as error:
            logger.exception("mcp_connection_broke", server=self.spec.name)
            fault = Unavailable(f"The connection broke ({type(error).__name__}).")
        finally:
            self._ended(fault, ready_at)

    def _is_ready(self) -> None:
        self.state, self.error = State.READY, ""
        self._settled.set()

    async def _serve(self, session: Session) -> None:
        """Until it is idle, closed, or gone. Raises Ended when it went by itself."""
        running = {asyncio.create_task(session.watch(lambda: self._inbox.put_nowait(_News.CHANGED)))}
        watching = set(running)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._idle_seconds):
                        item = await self._inbox.get()
                except TimeoutError:
                    if running <= watching:
                        return
                    continue
                match item:
                    case _News.CLOSE:
                        return
                    case _News.ENDED:
                        raise Ended
                    case _News.CHANGED:
                        if self._is_stale:
                            continue  # it will be listed anew anyway
                        self._is_stale = True
                        work = asyncio.create_task(self._relist(session))
                    case Pending() as call:
                        work = call.work = asyncio.create_task(self._answer(session, call))
                running.add(work)
                work.add_done_callback(running.discard)
        finally:
            left = list(running)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _relist(self, session: Session) -> None:
        """One at a time: a server that says again and again that its list has changed is asked now and then."""
        async with self._listing:
            self._is_stale = False
            await self._list_anew(session)
            await asyncio.sleep(LEAST_SECONDS_BETWEEN_LISTS)

    async def _list_anew(self, session: Session) -> None:
        try:
            async with asyncio.timeout(self._start_seconds):
                self.tools = await session.tools()
            self._is_ready()
        except (ServerFault, TimeoutError) as error:
            self.error = str(error) or f"It did not list its tools within {self._start_seconds:g} seconds."
            self._settled.set()

    async def _answer(self, session: Session, call: Pending) -> None:
        self._calling += 1
        try:
            if not call.answer.done():
                reply = await session.call(call.name, call.arguments, call.progress)
                if not call.answer.done():
                    call.answer.set_result(reply)
        except NotHeard as fault:
            self._inbox.put_nowait(_News.ENDED)
            if call.is_second:
                call.fail(fault)
            else:
                call.is_second = True
                self._inbox.put_nowait(call)
        except ServerFault as fault:
            call.fail(fault)
            if isinstance(fault, Ended) and self._calling == 1:  # over HTTP nothing else says that it is gone
                self._inbox.put_nowait(_News.ENDED)
        except asyncio.CancelledError:
            call.fail(Ended())
            raise
        except Exception:
            logger.exception("mcp_call_broke", server=self.spec.name, tool=call.name)
            call.fail(BadAnswer("What it answered cannot be read."))
        finally:
            self._calling -= 1

    def _ended(self, fault: ServerFault | None, ready_at: float | None) -> None:
        """Note how it ended; calls that were not begun go to the next connection, if there may be one at once."""
        self._owner = None
        self._was_ready = ready_at is not None
        waiting: list[Pending] = []
        while not self._inbox.empty():
            item = self._inbox.get_nowait()
            if isinstance(item, Pending) and not item.answer.done():
                waiting.append(item)
        if fault is None:
            self.state, self._failures = State.RESTING, 0
        elif ready_at is None:
            self._failed(str(fault), pause=2.0**self._failures)
        else:
            if _now() - ready_at > STEADY_SECONDS:
                self._failures = 0
            self._failed("It ended by itself.", pause=2.0 ** (self._failures - 1) if self._failures else 0.0)
        self._settled.set()
        if waiting:
            self.start(has_time=True)
        for call in waiting:
            if self._owner is not None:
                self._inbox.put_nowait(call)
                continue
            call.fail(Unavailable("It was removed." if self._is_closed else self.error))

    def _pause_left(self) -> float:
        return max(0.0, self._not_before - _now())

    def _failed(self, error: str, *, pause: float) -> None:
        tell = logger.info if error == self.error else logger.warning  # it is tried again and again
        self.state, self.error = State.FAILED, error
        self._not_before = _now() + min(pause, LONGEST_PAUSE_SECONDS)
        self._failures += 1
        tell("mcp_server_failed", server=self.spec.name, error=error, failures=self._failures)


async def load_sdk() -> ModuleType:
    """The file of the SDK, which takes a second to import."""
    return await asyncio.to_thread(import_module, "chat.mcp.session")


def _now() -> float:
    return asyncio.get_running_loop().time()
