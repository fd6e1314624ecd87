"""One person at every door of a server: JSON, server-sent events and WebSocket."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
from websockets.sync.client import ClientConnection, connect

from klerai.accounts.models import Person
from tests.harness.frames import Frame, from_json, server_sent
from tests.harness.visits import key_headers, session_headers
from tests.people import make_person

PATIENCE_SECONDS = 60


class Socket:
    """A WebSocket as a test speaks it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def send(self, frame: object) -> None:
        self._connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    def receive(self) -> dict[str, Any]:
        received: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE_SECONDS))
        return received

    def ask(self, message: object, **body: Any) -> str:
        """Send the question; the run id it was given."""
        run_id = str(body.pop("run_id", None) or uuid.uuid4())
        self.send({"type": "ask", "run_id": run_id, "message": message, **body})
        return run_id

    def frames(self) -> Iterator[Frame]:
        """Events until the terminal one."""
        while True:
            frame = from_json(self._connection.recv(timeout=PATIENCE_SECONDS))
            yield frame
            if frame.is_terminal:
                return

    def close(self) -> None:
        self._connection.close()

    @property
    def close_code(self) -> int | None:
        return self._connection.close_code


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person with a way in, and the server they stand before."""

    url: str
    person: Person
    headers: dict[str, str]
    http: httpx.Client = field(repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, path: str, body: object = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def ask(self, message: object, **body: Any) -> httpx.Response:
        return self.post("/api/chat", {"message": message, **body})

    def answer(self, message: object, **body: Any) -> dict[str, Any]:
        """The answer to a question that is answered."""
        response = self.ask(message, **body)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def refused(self, message: object, *, status: int, **body: Any) -> dict[str, Any]:
        """The error of a question that is not answered."""
        response = self.ask(message, **body)
        assert response.status_code == status, response.text
        error: dict[str, Any] = response.json()["error"]
        return error

    def events(self, message: object, **body: Any) -> list[Frame]:
        """The events of a question over SSE."""
        with self.asking(message, **body) as frames:
            return list(frames)

    @contextmanager
    def asking(self, message: object, **body: Any) -> Iterator[Iterator[Frame]]:
        """A question over SSE whose events are read one by one; leaving the block leaves the door."""
        headers = {"Accept": "text/event-stream"}
        with self.http.stream("POST", "/api/chat", json={"message": message, **body}, headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield server_sent(response.iter_raw())

    def replay(self, run_id: str, *, after: int | None = None, last_event_id: int | None = None) -> list[Frame]:
        with self.watching(run_id, after=after, last_event_id=last_event_id) as frames:
            return list(frames)

    @contextmanager
    def watching(
        self, run_id: str, *, after: int | None = None, last_event_id: int | None = None
    ) -> Iterator[Iterator[Frame]]:
        query = "" if after is None else f"?after={after}"
        headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
        with self.http.stream("GET", f"/api/runs/{run_id}/events{query}", headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield server_sent(response.iter_raw())

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/runs/{run_id}").json()
        return found

    def stop(self, run_id: str) -> httpx.Response:
        return self.post(f"/api/runs/{run_id}/stop")

    def balance(self) -> dict[str, int]:
        found: dict[str, int] = self.get("/api/billing").json()["balance"]
        return found

    @contextmanager
    def socket(self, path: str = "/ws/chat/") -> Iterator[Socket]:
        address = self.url.replace("http", "ws", 1) + path
        with connect(address, additional_headers=self.headers, proxy=None, max_size=None) as connection:
            yield Socket(connection)


def by_key(url: str, person: Person | None = None) -> Visitor:
    """A program of the person, or of somebody new with a day's credits."""
    person = person or make_person()
    return _visitor(url, person, key_headers(person))


def by_session(url: str, person: Person | None = None) -> Visitor:
    """A browser of the person, with its cookies and its page's token."""
    person = person or make_person()
    return _visitor(url, person, session_headers(url, person))


def _visitor(url: str, person: Person, headers: dict[str, str]) -> Visitor:
    client = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)
    return Visitor(url, person, headers, client)
