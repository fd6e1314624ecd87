"""An MCP server from the wire up: line by line over its pipes, or over HTTP. What it offers is a book of tools.

Every start, call, cancellation and end is a line of the journal, with the token it came with.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

PROTOCOL = "2025-11-25"
Tell = Callable[[str], None]


class Book(Protocol):
    """What a server offers. A result is the protocol's; an error is raised as Wrong."""

    name: str
    page_size: int

    def tools(self) -> list[dict[str, Any]]: ...

    def call(self, name: str, arguments: dict[str, Any], tell: Tell) -> dict[str, Any]: ...


class Wrong(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Journal:
    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._lock = threading.Lock()

    def note(self, event: str, token: str, **more: Any) -> None:
        if self._path is not None:
            line = json.dumps({"event": event, "token": token, "pid": os.getpid(), **more})
            with self._lock, self._path.open("a") as file:
                file.write(line + "\n")


class Peer:
    """Answers messages, whichever way they came."""

    def __init__(self, book: Book, journal: Journal, *, seconds: float = 0) -> None:
        self.book = book
        self.journal = journal
        self.seconds = seconds

    def answer(self, message: dict[str, Any], token: str, send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        try:
            return {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message, token, send)}
        except Wrong as wrong:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": wrong.code, "message": str(wrong)}}

    def _result(self, message: dict[str, Any], token: str, send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        asked = message.get("params") or {}
        match message["method"]:
            case "initialize":
                return {
                    "protocolVersion": PROTOCOL,
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": self.book.name, "version": "1"},
                }
            case "tools/list":
                first = int(asked.get("cursor") or 0)
                tools, beyond = self.book.tools(), first + self.book.page_size
                page: dict[str, Any] = {"tools": tools[first:beyond]}
                return page | ({"nextCursor": str(beyond)} if beyond < len(tools) else {})
            case "tools/call":
                self.journal.note("call", token, tool=asked["name"], arguments=asked.get("arguments") or {})
                mark = (asked.get("_meta") or {}).get("progressToken")
                tell = _teller(mark, send)
                for step in ("asked", "reading") if self.seconds else ():
                    tell(step)
                    time.sleep(self.seconds / 2)
                return self.book.call(asked["name"], asked.get("arguments") or {}, tell)
            case "ping":
                return {}
        raise Wrong(-32601, "Method not found")


def _teller(mark: Any, send: Callable[[dict[str, Any]], None]) -> Tell:
    """Progress of a call; a text that begins with `notifications/` is sent as that notification."""
    done = 0

    def tell(words: str) -> None:
        nonlocal done
        done += 1
        if words.startswith("notifications/"):
            send({"jsonrpc": "2.0", "method": words})
        elif mark is not None:
            params = {"progressToken": mark, "progress": done, "message": words}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    return tell


def over_pipes(peer: Peer, token: str) -> None:
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def work(message: dict[str, Any]) -> None:
        send(peer.answer(message, token, send))

    peer.journal.note("start", token, arguments=sys.argv[1:], read_only=os.environ.get("GITHUB_READ_ONLY", ""))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=work, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            peer.journal.note("cancelled", token)
    peer.journal.note("end", token)


def over_http(peer: Peer, port: int) -> ThreadingHTTPServer:
    sessions: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        @property
        def token(self) -> str:
            return self.headers.get("Authorization", "").removeprefix("Bearer ")

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            session, headers = self.headers.get("Mcp-Session-Id", ""), {}
            if not self.token or "refused" in self.token:
                return self._send(401)
            if message.get("method") == "initialize":
                session = uuid.uuid4().hex
                sessions[session] = self.token
                headers = {"Mcp-Session-Id": session}
                peer.journal.note("start", self.token, read_only=self.headers.get("X-MCP-Readonly", ""))
            elif message.get("method") == "server/discover":
                return self._send(400)
            elif sessions.get(session) != self.token:
                return self._send(404)
            if "id" not in message:
                if message["method"] == "notifications/cancelled":
                    peer.journal.note("cancelled", self.token)
                return self._send(202)
            return self._send(200, peer.answer(message, self.token, lambda _: None), **headers)

        def do_GET(self) -> None:
            self._send(405)

        def do_DELETE(self) -> None:
            sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
            peer.journal.note("end", self.token)
            self._send(200)

        def _send(self, status: int, body: dict[str, Any] | None = None, **headers: str) -> None:
            written = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def serve(book: Book) -> None:
    """`--http PORT` or pipes; `--journal FILE` to write down what happens; `--slow S` to be late with everything,
    `--seconds S` with every call.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--journal", default="")
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    given = parser.parse_args()
    time.sleep(given.slow)
    peer = Peer(book, Journal(given.journal), seconds=given.seconds)
    if given.http is None:
        over_pipes(peer, os.environ.get("GITHUB_PERSONAL_ACCESS_TOKEN", ""))
        return
    server = over_http(peer, given.http)
    print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever()
