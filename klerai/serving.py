"""One process that answers people and does the queued work: uvicorn and the worker in one event loop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import uvicorn
import uvloop
from django.conf import settings
from procrastinate.contrib.django import app

from klerai.mail import require_delivery
from retrieval.embedders.choosing import warm

GRACE_SECONDS = 30
_LAST_WORDS_SECONDS = 5  # for viewers to be sent the end of a run that the drain ended
WORKER_CONCURRENCY = 4
_RESTART_SECONDS = 1.0

logger = logging.getLogger(__name__)


def serve(
    listener: socket.socket,
    *,
    when_ready: Callable[[], None],
    with_worker: bool,
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Serve on `listener` until the first SIGINT or SIGTERM, then finish what runs and return.

    Raises BadSetting when mail could not be delivered from here.
    """
    require_delivery(settings.DELIVERY)
    config = uvicorn.Config(
        "klerai.asgi:application",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        ws_per_message_deflate=False,  # a frame is a few words: packing costs more than it saves, and 300 kB a socket
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=settings.DRAIN_SECONDS + _LAST_WORDS_SECONDS,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(_Website(config, when_ready=when_ready), listener, with_worker=with_worker))


def work() -> None:
    """Do the queued work until the first SIGINT or SIGTERM; a job that runs may finish.

    Raises BadSetting when mail could not be delivered from here.
    """
    require_delivery(settings.DELIVERY)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work_until_asked_to_stop())


class _Website(uvicorn.Server):
    """Says when it accepts, and leaves the process to its owner after a signal instead of raising it again.

    Runs are drained from the signal on, not only once the last viewer has gone: who watches one over HTTP keeps the
    connection until it ends, and is sent that end.
    """

    def __init__(self, config: uvicorn.Config, *, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._when_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drained = asyncio.create_task(self.lifespan.state["runtime"].drain())
        await super().shutdown(sockets=sockets)
        if self.force_exit:  # asked a second time: what still runs is left to the sweeper
            drained.cancel()
        with suppress(asyncio.CancelledError):
            await drained

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        previous = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


async def _serve(website: _Website, listener: socket.socket, *, with_worker: bool) -> None:
    with website.capture_signals():  # held until the worker is done, so that no signal interrupts the ending
        worker = asyncio.create_task(_keep_working()) if with_worker else None
        warming = asyncio.create_task(warm())
        try:
            await website.serve(sockets=[listener])
        finally:
            warming.cancel()
            if worker is not None:
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker


async def _work_until_asked_to_stop() -> None:
    loop = asyncio.get_running_loop()
    worker = asyncio.ensure_future(_keep_working())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, worker.cancel)
    with suppress(asyncio.CancelledError):
        await worker


async def _keep_working() -> None:
    """A worker that lost its database comes back when the database does."""
    while True:
        try:
            connector = app.connector.get_worker_connector()  # type: ignore[attr-defined]  # Django's has one
            async with app.with_connector(connector).open_async() as own:
                await own.run_worker_async(
                    concurrency=WORKER_CONCURRENCY,
                    install_signal_handlers=False,
                    shutdown_graceful_timeout=GRACE_SECONDS,
                    delete_jobs="successful",
                )
        except Exception:
            logger.exception("The worker failed and starts again.")
        await asyncio.sleep(_RESTART_SECONDS)
