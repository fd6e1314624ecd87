"""Real servers for tests: one in a thread of this process, and others in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import uvloop
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.test import override_settings

from chat.cards import card_for
from chat.orchestrator import Route
from chat.routing import websocket_urlpatterns
from chat.strategies.offline import Offline
from chat.strategies.vendors import BY_STRATEGY, Access
from chat.wiring import Runtime
from klerai.accounts.sockets import PersonSocketMiddleware
from klerai.asgi import WithRuntime
from klerai.database import in_database
from tests.fakes.anthropic import AnthropicFake
from tests.processes import REPOSITORY

START_SECONDS = 60
VENDOR_KEY = "sk-ant-a-key-nobody-may-read"


@contextmanager
def served(
    *, start: Callable[[], Awaitable[Runtime]] = Runtime.start, within: AbstractContextManager[object] | None = None
) -> Iterator[str]:
    """The address of a server in a thread, built as in production; `within` holds while it starts."""
    application = WithRuntime(
        ProtocolTypeRouter(
            {"http": get_asgi_application(), "websocket": PersonSocketMiddleware(URLRouter(websocket_urlpatterns))}
        ),
        start=start,
    )
    config = uvicorn.Config(
        application,
        port=0,
        lifespan="on",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
        ws="websockets-sansio",
    )
    website = uvicorn.Server(config)
    thread = threading.Thread(target=_serve, args=(website,), name="website")
    with within or nullcontext():
        thread.start()
        wait_until(lambda: website.started or not thread.is_alive(), what="the server to start")
        assert website.started, "the server did not start"
    try:
        yield f"http://127.0.0.1:{website.servers[0].sockets[0].getsockname()[1]}"
    finally:
        website.should_exit = True
        thread.join()


def _serve(website: uvicorn.Server) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(website.serve())


async def _unhurried() -> Runtime:
    card = await in_database(card_for, "offline", "offline")
    return await Runtime.start(route=Route(Offline(pause_seconds=0), card))


@pytest.fixture(scope="session")
def server(database: object) -> Iterator[str]:
    """A server without any model, which answers as fast as it can."""
    with served(start=_unhurried) as url:
        yield url


@pytest.fixture(scope="session")
def vendor_server(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """A server that asks the fake vendor by the real SDK."""
    with served(within=override_settings(**vendor_settings(anthropic_server.url))) as url:
        yield url


def vendor_settings(url: str, *, strategy: str = "anthropic") -> dict[str, Any]:
    """The settings of a server whose model is this vendor's, at this address."""
    access = Access(BY_STRATEGY[strategy].model, url, VENDOR_KEY, is_set=True)
    return {"STRATEGY": strategy, "MODEL_ACCESS": {**settings.MODEL_ACCESS, strategy: access}}


@dataclass(slots=True)
class ServerProcess:
    """A server in a process of its own, over the product's own settings."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str = ""

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """As a crash would end it."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def wait_ready(self) -> None:
        wait_until(self._has_started, what=f"{self.log} to say where it serves", seconds=START_SECONDS)

    def _has_started(self) -> bool:
        written = self.log.read_text()
        assert self.process.poll() is None, written
        _, found, rest = written.partition("Serving at ")
        self.url = rest.split()[0].strip('",') if found else ""
        return bool(self.url)


@contextmanager
def server_process(folder: Path, *, name: str = "server", **environment: str) -> Iterator[ServerProcess]:
    """`manage.py serve` over this test's database, until the end of the block."""
    log = folder / f"{name}.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--host", "127.0.0.1", "--port", "0"],
            cwd=REPOSITORY,
            env=command_environment(**environment),
            stdout=out,
            stderr=out,
        )
    server = ServerProcess(process, log)
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


def vendor_environment(url: str, *, strategy: str = "anthropic") -> dict[str, str]:
    prefix = BY_STRATEGY[strategy].prefix
    return {"KLERAI_STRATEGY": strategy, f"{prefix}_BASE_URL": url, f"{prefix}_API_KEY": VENDOR_KEY}


def command_environment(**more: str) -> dict[str, str]:
    """What a process of the product needs to work on the database of this test process."""
    settings = {
        "DJANGO_SETTINGS_MODULE": "klerai.settings",
        "ALLOWED_HOSTS": "127.0.0.1",
        "EMAIL_URL": "console:",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **settings, **more}


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py …` to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=REPOSITORY,
        env=command_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


def wait_until(holds: Callable[[], object], *, what: str, seconds: float = 20) -> None:
    """Look until it holds; failing is the only thing that takes the whole time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
