"""What the fakes of services outside share: a server in a thread, and scripts for what goes wrong."""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, Any]
Fake = TypeVar("Fake", bound="OutsideFake")


@dataclass(frozen=True, slots=True)
class Step:
    """How the next request is met in place of a right answer.

    `status` is an error of that status with the service's own body, or with `body`: JSON, or a text sent as HTML.
    `wrong` spoils a right answer in a way the service knows by that name. `is_stalled` says nothing until the fake is
    closed; `is_cut` ends the connection in mid-answer; `wait` is the service's wish in seconds.
    """

    status: int = 200
    body: Any = None
    wrong: str = ""
    is_stalled: bool = False
    is_cut: bool = False
    wait: int | None = None


OK = Step()


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came."""

    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class OutsideFake:
    """One service. Subclasses say what it answers, how its errors look, and how an answer may be spoilt.

    Unless it `waits_by_body`, its wish to be left alone is a header.
    """

    waits_by_body: ClassVar[bool] = False
    steps: list[Step] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    _closing: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def answer(self, seen: Seen) -> Answer:
        raise NotImplementedError

    def error(self, step: Step) -> Any:
        raise NotImplementedError

    def spoilt(self, body: Any, wrong: str) -> Any:
        raise NotImplementedError

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *steps: Step) -> None:
        """The next requests are met so, in order; after them all are right again."""
        self.steps[:] = steps

    def reset(self) -> None:
        self.steps.clear()
        self.requests.clear()

    def start(self, host: str = "127.0.0.1", port: int = 0) -> Self:
        self._server = ThreadingHTTPServer((host, port), _handler(self))
        self._server.daemon_threads = True
        serving = threading.Thread(
            target=self._server.serve_forever, args=[0.01], name=type(self).__name__, daemon=True
        )
        serving.start()
        return self

    def close(self) -> None:
        self._closing.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def wait_for_close(self) -> None:
        self._closing.wait()


@contextmanager
def running(fake: Fake) -> Iterator[Fake]:
    fake.start()
    try:
        yield fake
    finally:
        fake.close()


def serve_by_hand(fake: OutsideFake, what: str | None) -> None:
    """`python -m tests.fakes.…_server --port 0`: prints the address first, and serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        print(fake.start(arguments.host, arguments.port).url, flush=True)
        fake.wait_for_close()


def _handler(fake: OutsideFake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._meet(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            try:
                is_form = self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
                self._meet(dict(parse_qsl(raw.decode())) if is_form else json.loads(raw))
            except ValueError:
                self._say(400, {"error": {"message": "bad JSON", "type": "invalid_request", "code": 400}})

        def _meet(self, body: Any) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(parts.path, dict(parse_qsl(parts.query)), headers, body)
            fake.requests.append(seen)
            step = fake.steps.pop(0) if fake.steps else OK
            if step.is_stalled:
                fake.wait_for_close()
                self.close_connection = True
                return
            if step.status != 200 or step.body is not None:
                wait = None if fake.waits_by_body else step.wait
                self._say(step.status, fake.error(step) if step.body is None else step.body, wait=wait)
                return
            status, said = fake.answer(seen)
            if step.wrong and status == 200:
                said = fake.spoilt(said, step.wrong)
            self._say(status, said, is_cut=step.is_cut)

        def _say(self, status: int, body: Any, *, is_cut: bool = False, wait: int | None = None) -> None:
            raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(raw)))
            if wait is not None:
                self.send_header("Retry-After", str(wait))
            self.end_headers()
            self.wfile.write(raw[: len(raw) // 2] if is_cut else raw)
            self.close_connection = self.close_connection or is_cut

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
