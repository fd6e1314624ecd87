"""A website of the test's own that counts who connects, and the wires that lead to it instead of to the world."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpcore2


@dataclass(slots=True)
class Page:
    """What a path answers; `each_seconds` passes before every piece of the body."""

    body: Sequence[bytes] = (b"Hello.",)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    each_seconds: float = 0


@dataclass(slots=True)
class Website:
    """Answers by path whatever the host; `requests` are (host, path, headers), `hosts` what was asked for by TLS."""

    port: int
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    hosts: list[str | None] = field(default_factory=list)
    connections: int = 0


@contextmanager
def website(*, tls: ssl.SSLContext | None = None) -> Iterator[Website]:
    """A website on every address of this machine; with `tls` it speaks https."""
    site = Website(0)

    class Counting(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            connection, address = super().get_request()
            site.connections += 1
            return connection, address

    server = Counting(("0.0.0.0", 0), _handler(site))
    site.port = server.server_address[1]
    if tls is not None:
        tls.sni_callback = lambda _, name, __: site.hosts.append(name)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever, args=[0.01], name="website", daemon=True)
    serving.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def _handler(site: Website) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.requests.append((headers.get("host", ""), self.path, headers))
            page = site.pages.get(self.path, Page())
            self.send_response(page.status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in page.body:
                    time.sleep(page.each_seconds)
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:  # the reader has had enough
                pass

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@dataclass(slots=True)
class Names:
    """A resolver: what each name stands for, one answer after the other; numbers stand for what the system says."""

    table: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host in self.table:
            answers = self.table[host]
            return answers[min(self.asked.count(host), len(answers)) - 1]
        numbers = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [str(entry[4][0]) for entry in numbers]


@dataclass(slots=True)
class Wires(httpcore2.AsyncNetworkBackend):
    """Leads every connection to a port of this machine, and keeps what it was meant for."""

    port: int
    connected: list[tuple[str, int]] = field(default_factory=list)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.connected.append((host, port))
        return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self.port, timeout)
