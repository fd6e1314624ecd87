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
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Status

import klerai.mail_queue  # noqa: F401  whose task has to be known before the first job is fetched
from klerai.mail import require_delivery
from retrieval.embedders.choosing import warm

GRACE_SECONDS = 30
_LAST_WORDS_SECONDS = 5  # for viewers to be sent the end of a run that the drain ended
WORKER_CONCURRENCY = 4
SLOW_QUEUES = {
    "ingestion": 2,
    "exports": 1,
}  # jobs of half a minute: so many at a time, and never in the way of the others
STALLED_SECONDS = 20  # without a word from its worker, a job is taken to be nobody's
_HEARTBEAT_SECONDS = 5.0
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
    """All queues, the slow ones apart, until cancelled."""
    quick = {task.queue for task in app.tasks.values()} - set(SLOW_QUEUES)
    await asyncio.gather(
        _keep_emptying(sorted(quick), WORKER_CONCURRENCY),
        *(_keep_emptying([queue], concurrency) for queue, concurrency in SLOW_QUEUES.items()),
        _keep_reviving(),
    )


async def _keep_emptying(queues: list[str], concurrency: int) -> None:
    """A worker that lost its database comes back when the database does."""
    while True:
        try:
            connector = app.connector.get_worker_connector()  # type: ignore[attr-defined]  # Django's has one
            async with app.with_connector(connector).open_async() as own:
                await own.run_worker_async(
                    queues=queues,
                    concurrency=concurrency,
                    install_signal_handlers=False,
                    shutdown_graceful_timeout=GRACE_SECONDS,
                    update_heartbeat_interval=_HEARTBEAT_SECONDS,
                    stalled_worker_timeout=STALLED_SECONDS,
                    delete_jobs="successful",
                )
        except Exception:
            logger.exception("The worker failed and starts again.")
        await asyncio.sleep(_RESTART_SECONDS)


async def _keep_reviving() -> None:
    """Jobs of workers that are gone are done again: every task is one that may be."""
    while True:
        try:
            await revive_stalled_jobs()
        except Exception:
            logger.exception("Stalled jobs were not looked for.")
        await asyncio.sleep(_HEARTBEAT_SECONDS)


async def revive_stalled_jobs() -> int:
    """Queue again what a worker was doing that has not been heard of for STALLED_SECONDS; how many jobs that were."""
    manager, revived = app.job_manager, 0
    for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
        try:
            await manager.retry_job(job)
            revived += 1
            logger.warning("Job %s of a worker that is gone is done again.", job.id)
        except UniqueViolation:  # the same work waits already
            await manager.finish_job(job, status=Status.FAILED, delete_job=False)
    return revived
