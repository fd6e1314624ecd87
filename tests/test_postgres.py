"""The embedded server: starts, is shared, recovers, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from klerai.postgres import APP, OWNER, EmbeddedServer, PostgresError
from klerai.postgres.binaries import SHARED_PLACE, installed
from tests.processes import as_normal_user, is_root, postgres_processes

CODE = """
import os, signal, sys
from pathlib import Path
from klerai.postgres import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.start()
"""
needs_root = pytest.mark.skipif(not is_root(), reason="only root can become another account or mount a small disk")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A short path every account can reach; nothing runs in it after the test."""
    made = Path(tempfile.mkdtemp(prefix="klerai-test-", dir="/tmp"))
    made.chmod(0o711)
    path = made / "data"
    yield path
    server = EmbeddedServer(path)
    if (path / "postgres").exists():
        server.start()
        server.stop()
    assert postgres_processes(path) == []
    place = (path / "postgres").resolve()
    if place.is_relative_to(SHARED_PLACE):
        shutil.rmtree(place)
    shutil.rmtree(made)


def run_python(code: str, *arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


@contextmanager
def the_oldest_postgres() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PGSERVER_POSTGRES_VERSION", str(min(installed())))
        yield


def write_a_row(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url(OWNER)) as db:
        db.execute("CREATE TABLE IF NOT EXISTS note (id int GENERATED ALWAYS AS IDENTITY, text text)")
    with psycopg.connect(server.url(APP)) as db:
        db.execute("INSERT INTO note (text) VALUES ('kept')")


def sockets_in_tmp() -> set[Path]:
    return {path for path in Path("/tmp").glob("klerai-*") if re.fullmatch("klerai-[0-9a-f]{20}", path.name)}


def rows(server: EmbeddedServer) -> int:
    with psycopg.connect(server.url(APP)) as db:
        return db.execute("SELECT count(*) FROM note").fetchone()[0]


@pytest.mark.thorough
def test_the_address_is_known_before_the_server_runs_and_carries_no_password(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    before = server.url(APP)
    server.start()
    assert server.url(APP) == before
    assert "passfile=" in before
    assert ":@" not in before
    server.stop()


def test_the_application_reads_and_writes_but_changes_no_tables(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    write_a_row(server)
    with psycopg.connect(server.url(OWNER, database="postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE another")
    with psycopg.connect(server.url(OWNER, database="another")) as db:
        db.execute("CREATE TABLE vectors (at vector(2))")
    for database, table in (("klerai", "note"), ("another", "vectors")):
        with psycopg.connect(server.url(APP, database=database), autocommit=True) as db:
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() is not None
            for forbidden in ("CREATE TABLE mine ()", f"TRUNCATE {table}", f"DROP TABLE {table}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(forbidden)
    server.stop()


@pytest.mark.thorough
def test_text_sorts_and_folds_the_same_on_every_machine(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    with psycopg.connect(server.url(APP)) as db:
        found = db.execute(
            "SELECT lower('ÄÖÜ'), datlocprovider, datlocale FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert found == ("äöü", "b", "C.UTF-8")
    server.stop()


def test_nobody_gets_in_without_the_password_file(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    for role in (APP, OWNER, "klerai_admin"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(re.sub(r"passfile=.*", "passfile=/dev/null", server.url(role)))
    passwords = data_dir / "postgres" / "passwords"
    assert passwords.stat().st_mode & 0o777 == 0o600
    server.stop()


@pytest.mark.thorough
def test_the_last_user_stops_the_server(data_dir: Path) -> None:
    first, second = EmbeddedServer(data_dir), EmbeddedServer(data_dir)
    first.start()
    second.start()
    first.stop()
    assert postgres_processes(data_dir) != []
    with psycopg.connect(second.url(APP)):
        pass
    second.stop()
    assert postgres_processes(data_dir) == []


@pytest.mark.thorough
def test_a_server_left_by_a_killed_process_is_used_and_then_stopped(data_dir: Path) -> None:
    killed = run_python(CODE + "os.kill(os.getpid(), signal.SIGKILL)", data_dir)
    assert killed.returncode == -signal.SIGKILL
    left = postgres_processes(data_dir)
    assert left != []
    server = EmbeddedServer(data_dir)
    server.start()
    assert postgres_processes(data_dir) == left
    server.stop()
    assert postgres_processes(data_dir) == []


@pytest.mark.thorough
def test_rows_survive_a_killed_server(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    write_a_row(server)
    (postmaster,) = postgres_processes(data_dir)
    os.kill(postmaster, signal.SIGKILL)
    again = EmbeddedServer(data_dir)
    again.start()
    assert rows(again) == 1
    again.stop()
    server.stop()


@pytest.mark.thorough
def test_a_pid_file_that_names_a_stranger_does_not_stop_a_start(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    write_a_row(server)
    pid_file = data_dir / "postgres" / "data" / "postmaster.pid"
    text = pid_file.read_text()
    server.stop()
    pid_file.write_text(re.sub(r"^\d+", str(os.getpid()), text))
    server.start()
    assert rows(server) == 1
    server.stop()


@pytest.mark.thorough
def test_an_interrupted_first_start_is_started_over(data_dir: Path) -> None:
    cluster = data_dir / "postgres" / "data"
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    (data_dir / "postgres" / "prepared").unlink()
    shutil.rmtree(cluster / "base")
    server.start()
    write_a_row(server)
    assert rows(server) == 1
    server.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["x" * 120, 'a "quoted" $HOME, and; spaced'], ids=["long", "odd"])
def test_any_path_will_do(data_dir: Path, name: str) -> None:
    server = EmbeddedServer(data_dir / name)
    sockets = Path(str(conninfo_to_dict(server.url(APP))["host"]))
    server.start()
    write_a_row(server)
    assert rows(server) == 1
    assert sockets in sockets_in_tmp()
    server.stop()
    assert postgres_processes(data_dir / name) == []
    assert sockets not in sockets_in_tmp()
    shutil.rmtree(data_dir)


@pytest.mark.thorough
def test_a_lost_password_file_is_named(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    passwords = data_dir / "postgres" / "passwords"
    aside = passwords.rename(passwords.with_name("aside"))
    with pytest.raises(PostgresError, match=str(passwords)):
        server.start()
    aside.rename(passwords)


@pytest.mark.thorough
def test_an_older_database_is_upgraded_with_its_rows(data_dir: Path) -> None:
    oldest, newest = min(installed()), max(installed())
    server = EmbeddedServer(data_dir)
    with the_oldest_postgres():
        server.start()
        write_a_row(server)
        server.stop()
    server.start()
    assert rows(server) == 1
    with psycopg.connect(server.url(APP)) as db:
        assert db.info.server_version // 10_000 == newest
        db.execute("INSERT INTO note (text) VALUES ('as before')")
    server.stop()
    assert (data_dir / "postgres" / f"data-{oldest}").exists()

    with the_oldest_postgres(), pytest.raises(PostgresError, match=f"made by PostgreSQL {newest}"):
        server.start()


@pytest.mark.thorough
def test_an_upgrade_interrupted_at_its_end_starts_over(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    with the_oldest_postgres():
        server.start()
        write_a_row(server)
        server.stop()
    home = data_dir / "postgres"
    (home / "data").rename(home / f"data-{min(installed())}")
    server.start()
    assert rows(server) == 1
    server.stop()


@needs_root
@pytest.mark.thorough
def test_a_full_disk_is_a_sentence_and_costs_nothing(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o711)
    size = ["-t", "tmpfs", "-o", "size=24m,mode=0711", "tmpfs", data_dir]
    if subprocess.run(["mount", *size], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow mounting a small disk")
    try:
        server = EmbeddedServer(data_dir)
        with pytest.raises(PostgresError, match="no space left"):
            server.start()
        assert postgres_processes(data_dir) == []
        subprocess.run(["mount", "-o", "remount,size=300m", data_dir], check=True)
        server.start()
        write_a_row(server)
        (data_dir / "filler").write_bytes(b"x" * (shutil.disk_usage(data_dir).free - 4096))
        server.stop()
        with pytest.raises(PostgresError, match="no space left"):
            server.start()
        (data_dir / "filler").unlink(missing_ok=True)
        server.start()
        assert rows(server) == 1
        server.stop()
    finally:
        subprocess.run(["umount", data_dir], check=True)


@pytest.mark.thorough
@needs_root
def test_as_root_the_server_runs_as_somebody_unprivileged(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.start()
    (postmaster,) = postgres_processes(data_dir)
    assert Path(f"/proc/{postmaster}").stat().st_uid != 0
    server.stop()


@needs_root
@pytest.mark.thorough
def test_what_the_unprivileged_account_cannot_reach_is_copied_and_said(data_dir: Path, tmp_path: Path) -> None:
    """A virtual environment and a data directory under a private home, as with root's."""
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    package = installed()[max(installed())].parent.parent
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, private / "packages" / folder.name, symlinks=True)
    had_programs = set(SHARED_PLACE.glob("programs-*"))
    place = private / "data"
    path = os.pathsep.join([str(private / "packages"), *filter(None, sys.path)])
    ran = run_python(CODE + "server.stop()", place, env={**os.environ, "PYTHONPATH": path})
    try:
        assert ran.returncode == 0, ran.stderr
        database = (place / "postgres").resolve()
        assert database.is_relative_to(SHARED_PLACE)
        assert str(database) in ran.stderr
        assert private.stat().st_mode & 0o777 == 0o700
        server = EmbeddedServer(place)
        server.start()
        write_a_row(server)
        assert rows(server) == 1
        server.stop()
    finally:
        shutil.rmtree((place / "postgres").resolve())
        for made in set(SHARED_PLACE.glob("programs-*")) - had_programs:
            shutil.rmtree(made)


@needs_root
@pytest.mark.thorough
def test_a_database_of_a_normal_user_serves_root_too_and_stays_theirs(data_dir: Path) -> None:
    user = as_normal_user()
    data_dir.mkdir()
    os.chown(data_dir, user.uid, user.gid)
    made = user.run_python(CODE + "server.stop()", data_dir)
    assert made.returncode == 0, made.stderr
    server = EmbeddedServer(data_dir)
    server.start()
    write_a_row(server)
    (postmaster,) = postgres_processes(data_dir)
    assert Path(f"/proc/{postmaster}").stat().st_uid == user.uid
    server.stop()
    again = user.run_python(CODE + "server.stop()", data_dir)
    assert again.returncode == 0, again.stderr


@needs_root
@pytest.mark.thorough
def test_a_normal_user_is_told_whose_database_it_is(data_dir: Path) -> None:
    user = as_normal_user()
    server = EmbeddedServer(data_dir)
    server.start()
    server.stop()
    data_dir.chmod(0o777)
    refused = user.run_python(
        "import sys, pathlib\nfrom klerai.postgres import *\n"
        "try: EmbeddedServer(pathlib.Path(sys.argv[1])).start()\nexcept PostgresError as error: print(error)",
        data_dir,
    )
    assert "Nothing was changed" in refused.stdout, refused.stderr
    assert refused.stderr == ""


@needs_root
def test_a_directory_that_cannot_be_written_is_a_sentence(data_dir: Path) -> None:
    user = as_normal_user()
    data_dir.mkdir(mode=0o755)
    refused = user.run_python(
        "import sys, pathlib\nfrom klerai.postgres import *\n"
        "try: EmbeddedServer(pathlib.Path(sys.argv[1])).start()\nexcept PostgresError as error: print(error)",
        data_dir,
    )
    assert f"{data_dir} cannot be used: permission denied" in refused.stdout, refused.stderr
