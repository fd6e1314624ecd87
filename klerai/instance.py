"""The one `up` of a data directory, and the address it listens on."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_BACKLOG = 2048


class Refused(Exception):
    """Why `up` or `serve` cannot start here; `str(error)` is a sentence."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A taken address: connections wait in its queue until the server is there."""

    socket: socket.socket
    host: str

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@contextmanager
def only_instance(data_dir: Path) -> Iterator[Path]:
    """Hold the data directory; yields the file the address belongs into. Raises Refused when another `up` holds it."""
    path = data_dir / "up.lock"
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            where = f"at {address}" if (address := lock.read().strip()) else "and is just starting"
            raise Refused(f"KlerAI is already running {where} with the data directory {data_dir}.") from None
        lock.truncate(0)
        try:
            yield path
        finally:
            lock.truncate(0)


@contextmanager
def listen(host: str, port: int) -> Iterator[Listener]:
    """Take the address, or raise Refused when somebody has it."""
    bare = host.strip("[]")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, OverflowError) as error:
        raise Refused(f"{host}:{port} is not an address to listen on. Choose another --host or --port.") from error
    bound = socket.socket(family, kind, proto)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise Refused(_why(error, host, port)) from error
    with bound:
        yield Listener(bound, bare)


def _why(error: OSError, host: str, port: int) -> str:
    advice = "Nothing was started. Choose another one with --port; 0 picks a free one."
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} is in use by another program. {advice}"
        case errno.EACCES:
            return f"This account may not listen on port {port}. {advice}"
        case errno.EADDRNOTAVAIL:
            return f"{host} is not an address of this machine. Nothing was started. Choose another --host."
    return f"KlerAI cannot listen on {host}:{port}: {error.strerror}. {advice}"
