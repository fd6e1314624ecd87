"""Test databases on the embedded server: one migrated template, one copy of it for each process of a run."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psycopg
from asgiref.sync import SyncToAsync
from django.apps import apps
from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created

from klerai.postgres import APP, OWNER, EmbeddedServer

_MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@contextmanager
def made_for_this_process() -> Iterator[None]:
    """A fresh database under the name tests/settings.py chose, until the end of the run."""
    server = EmbeddedServer(settings.TEST_DATA_DIR, options=_NOT_DURABLE)
    server.start()
    runs = settings.TEST_DATA_DIR / "runs"
    runs.mkdir(exist_ok=True)
    name = settings.TEST_DATABASE
    try:
        with _locked(runs / name):
            with _locked(runs / "build.lock"), _as_owner(server) as db:
                _drop_databases_of_dead_runs(db, runs)
                template = _have_template(db, server)
                db.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
            yield
            connections.close_all()
            connections["default"].close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one, if it was asked for
            with _as_owner(server) as db:
                db.execute(f'DROP DATABASE "{name}"')
            (runs / name).unlink()
    finally:
        server.stop()


@contextmanager
def database_apart() -> Iterator[str]:
    """The address of one more fresh database, for processes that must not meet what other tests left behind."""
    server = EmbeddedServer(settings.TEST_DATA_DIR)
    runs = settings.TEST_DATA_DIR / "runs"
    name = f"{settings.TEST_DATABASE}_apart"
    with _locked(runs / name), _as_owner(server) as db:
        with _locked(runs / "build.lock"):
            template = _have_template(db, server)
            db.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        try:
            yield server.url(APP, database=name)
        finally:
            db.execute(f'DROP DATABASE "{name}"')
            (runs / name).unlink()


class OpenConnections:
    """Every connection Django opens while this is entered, so that none is left to the garbage collector."""

    def __init__(self) -> None:
        self._open: list[tuple[threading.Thread, psycopg.Connection[Any]]] = []

    def __enter__(self) -> Self:
        connection_created.connect(self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        connection_created.disconnect(self._remember)
        connections.close_all()
        SyncToAsync.single_thread_executor.submit(connections.close_all).result()
        for _thread, connection in self._open:
            connection.close()

    def close_abandoned(self) -> None:
        """Close what belongs to threads that ended."""
        for thread, connection in self._open:
            if not thread.is_alive():
                connection.close()
        self._open = [(thread, connection) for thread, connection in self._open if not connection.closed]

    def _remember(self, *, connection: Any, **_: object) -> None:
        self._open.append((threading.current_thread(), connection.connection))


def _have_template(db: psycopg.Connection[Any], server: EmbeddedServer) -> str:
    """A database with today's migrations; made again when one of their files changes."""
    name = f"template_{_fingerprint()}"
    if db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
        return name
    for (old,) in db.execute("SELECT datname FROM pg_database WHERE datname LIKE 'template\\_%'").fetchall():
        with suppress(psycopg.errors.ObjectInUse):
            db.execute(f'DROP DATABASE "{old}"')
    building = "template_building"
    db.execute(f'CREATE DATABASE "{building}"')
    environment = {**os.environ, "DATABASE_URL": server.url(OWNER, database=building), "KLERAI_TEST_KEEP_URL": "1"}
    done = subprocess.run(
        [sys.executable, str(_MANAGE), "migrate", "--no-input", "--skip-checks", "--verbosity=0"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"`manage.py migrate` failed:\n{done.stdout}{done.stderr}")
    db.execute(f'ALTER DATABASE "{building}" RENAME TO "{name}"')
    return name


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for app in apps.get_app_configs():
        for file in sorted(Path(app.path, "migrations").rglob("*")):
            if file.suffix in {".py", ".sql"}:
                digest.update(f"{app.label}/{file.name}".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _drop_databases_of_dead_runs(db: psycopg.Connection[Any], runs: Path) -> None:
    for (name,) in db.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'").fetchall():
        with suppress(BlockingIOError), _locked(runs / name, wait=False):
            db.execute(f'DROP DATABASE IF EXISTS "{name}"')
            (runs / name).unlink()


@contextmanager
def _as_owner(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.url(OWNER, database="postgres"), autocommit=True) as db:
        yield db


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
