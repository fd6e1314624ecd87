"""What the fakes of embedding services share: a server in a thread, scripts, and vectors that mean something."""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Answer = tuple[int, Any]
Fake = TypeVar("Fake", bound="EmbeddingFake")


@dataclass(frozen=True, slots=True)
class Step:
    """How the next request is met in place of a right answer.

    `status` is an error of that status; `wrong` is `count`, `nan`, `dimension` or `form`; `is_stalled` says nothing at
    all until the fake is closed, `is_cut` ends the connection in mid-answer; `wait` is the vendor's wish in seconds.
    """

    status: int = 200
    wrong: str = ""
    is_stalled: bool = False
    is_cut: bool = False
    wait: int | None = None


OK = Step()


@dataclass(slots=True)
class Seen:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class EmbeddingFake:
    """One service. Subclasses say what it answers, and how its errors and wrong answers look."""

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


def serve_by_hand(fake: EmbeddingFake, what: str) -> None:
    """`python -m tests.fakes.…_server --port 0`: prints the address first, and serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        print(fake.start(arguments.host, arguments.port).url, flush=True)
        fake.wait_for_close()


def vector_of(text: str, dimension: int, *, kind: str = "") -> list[float]:
    """A unit vector seeded by the words, so that texts which share words are near; `kind` moves it a little."""
    total = np.zeros(dimension)
    for word in text.lower().split() or [""]:
        total += _word(word, dimension)
    total += 0.1 * np.linalg.norm(total) / dimension**0.5 * _word(f"\0{kind}", dimension)
    return [float(number) for number in total / np.linalg.norm(total)]


@lru_cache(maxsize=10_000)
def _word(word: str, dimension: int) -> NDArray[np.float64]:
    seed = int.from_bytes(sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def _handler(fake: EmbeddingFake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                body = json.loads(raw)
            except ValueError:
                return self._say(400, {"error": "bad JSON", "detail": "bad JSON"})
            seen = Seen(self.path, headers, body)
            fake.requests.append(seen)
            step = fake.steps.pop(0) if fake.steps else OK
            if step.is_stalled:
                fake.wait_for_close()
                self.close_connection = True
                return None
            if step.status != 200:
                return self._say(step.status, fake.error(step))
            status, said = fake.answer(seen)
            if step.wrong and status == 200:
                said = fake.spoilt(said, step.wrong)
            return self._say(status, said, is_cut=step.is_cut)

        def _say(self, status: int, body: Any, *, is_cut: bool = False) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw[: len(raw) // 2] if is_cut else raw)
            self.close_connection = self.close_connection or is_cut

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
