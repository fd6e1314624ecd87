"""The embedded server: started by whoever needs it first, stopped by whoever leaves last."""

from __future__ import annotations

import fcntl
import os
import shlex
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

from klerai.postgres.account import account_for
from klerai.postgres.cluster import APP, DATABASE, OWNER, Cluster
from klerai.postgres.errors import (
    CommandFailed,
    PostgresError,
    StartTimedOut,
    because,
    complaint,
    last_words,
    trouble_in,
)
from klerai.postgres.home import Home

START_SECONDS = 60
STOP_SECONDS = 60

_OPTIONS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "512MB",
    "jit": "off",
    "log_checkpoints": "off",
    "log_min_messages": "log",  # errors quote what people wrote; the application logs its own
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_timezone": "UTC",
    "timezone": "UTC",
}

__all__ = ["APP", "OWNER", "EmbeddedServer"]


class EmbeddedServer:
    """One server per data directory, shared by every process that uses it.

    Each holds a shared lock while it does; the one that can have the lock alone
    at its end stops the server, also one that a killed process left behind.
    """

    def __init__(self, data_dir: Path, *, options: Mapping[str, str] | None = None) -> None:
        self._home = Home(data_dir.resolve() / "postgres")
        self._options = {**_OPTIONS, **(options or {})}
        self._user: int | None = None

    def url(self, role: str, *, database: str = DATABASE) -> str:
        """The same before, while and after the server runs; carries no password."""
        host = quote(str(self._home.sockets), safe="")
        return f"postgresql://{role}@{host}:5432/{database}?passfile={quote(str(self._home.passwords), safe='')}"

    def make_data_dir(self) -> None:
        """Have the directory there and writable, or say in a sentence why not."""
        directory = self._home.path.parent
        try:
            self._home.make_data_dir()
            with tempfile.NamedTemporaryFile(dir=directory, prefix=".writable-") as probe:
                probe.write(b"written")
        except OSError as error:
            raise because(error, directory) from error

    def trouble(self, words: str) -> PostgresError | None:
        """What is wrong with the server itself when a program that uses it fails with `words`."""
        return trouble_in(words + self._said(), self._home.path.parent)

    def start(self) -> None:
        """Have the server running and count this process among its users; again does nothing."""
        if self._user is not None:
            return
        try:
            with self._home.starting_or_stopping():
                cluster = Cluster(self._home, self._home.settle())
                self._user = self._home.open_private("users.lock")
                try:
                    fcntl.flock(self._user, fcntl.LOCK_SH)
                    self._have_running(cluster)
                except BaseException:
                    self._leave(cluster)
                    raise
        except OSError as error:
            raise because(error, self._home.path.parent) from error

    def stop(self) -> None:
        """Stop using the server, and stop it when nobody else uses it."""
        if self._user is None:
            return
        with suppress(FileNotFoundError), self._home.starting_or_stopping():
            # A server whose data directory was removed ends by itself: there is nothing left to ask it by.
            self._leave(Cluster(self._home, account_for(self._home.cluster)))

    def _leave(self, cluster: Cluster) -> None:
        user, self._user = self._user, None
        if user is None:
            return
        try:
            fcntl.flock(user, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._shut_down(cluster)
            self._home.leave_no_folder_elsewhere()
        except BlockingIOError:
            return  # somebody else uses it
        finally:
            os.close(user)

    def _have_running(self, cluster: Cluster) -> None:
        deadline = time.monotonic() + START_SECONDS
        if self._home.prepared.exists():
            self._home.password_of(APP)
        while (claim := self._home.claim_cluster()) is None:  # left by a killed process, or still leaving itself
            if self._is_ready(cluster):
                break
            if time.monotonic() > deadline:
                raise self._timed_out()
            time.sleep(0.05)
        else:
            try:
                cluster.bring_up_to_date()
                self._launch(cluster, claim)
            finally:
                os.close(claim)
        if not cluster.is_prepared:
            self._prepare(cluster)

    def _prepare(self, cluster: Cluster) -> None:
        try:
            cluster.prepare()
        except psycopg.Error as error:
            raise complaint("preparation", f"{error}\n{self._said()}", self._home.path.parent) from error

    def _launch(self, cluster: Cluster, claim: int) -> None:
        self._home.forget_the_dead()
        options = {**self._options, "unix_socket_directories": str(self._home.sockets.resolve())}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        log = self._home.open_private("server.log", os.O_WRONLY | os.O_TRUNC)
        deadline = time.monotonic() + START_SECONDS
        try:
            started = cluster.account.run(
                (cluster.program("pg_ctl"), "start", "-s", "-w", "-t", str(START_SECONDS), "-o", shlex.join(words)),
                env={"PGDATA": str(self._home.cluster.resolve())},
                output=log,
                keep_open=(claim,),
            )
        finally:
            os.close(log)
        if started.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise self._timed_out()
        raise complaint("start", self._said(), self._home.path.parent)

    def _shut_down(self, cluster: Cluster) -> None:
        """End it the clean way, or, when that takes too long, the way that recovers at the next start."""
        deadline = time.monotonic() + STOP_SECONDS
        while self._home.is_in_use():  # asked again, since one that is just starting has no pid file yet
            mode = "fast" if time.monotonic() < deadline else "immediate"
            cluster.account.run(
                (cluster.program("pg_ctl"), "stop", "-s", "-w", "-t", str(STOP_SECONDS), "-m", mode),
                env={"PGDATA": str(self._home.cluster.resolve())},
            )
            if self._home.is_in_use():
                time.sleep(0.05)
            if time.monotonic() > deadline + STOP_SECONDS:
                raise CommandFailed("stop", last_words=f"it still runs after {2 * STOP_SECONDS} seconds")

    def _is_ready(self, cluster: Cluster) -> bool:
        asked = cluster.account.run(
            (cluster.program("pg_isready"), "-q", "-h", self._home.sockets.resolve(), "-p", "5432"), timeout=10
        )
        return asked.returncode == 0

    def _timed_out(self) -> PostgresError:
        return StartTimedOut(self._home.log, seconds=START_SECONDS, last_words=last_words(self._said()))

    def _said(self) -> str:
        try:
            return self._home.log.read_text(errors="replace")
        except OSError:
            return ""
