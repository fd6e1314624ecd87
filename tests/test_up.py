"""`manage.py up`, and what every command says when it cannot start."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings

from klerai.postgres import APP, EmbeddedServer
from tests.processes import as_normal_user, is_root, postgres_processes
from tests.running import READY, Up, background, manage, plain_environment, up

pytestmark = pytest.mark.xdist_group("up")
needs_root = pytest.mark.skipif(not is_root(), reason="only root can become another account or mount a small disk")


def _fresh_directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="klerai-test-", dir="/tmp"))
    made.chmod(0o711)
    yield made / "data"
    assert postgres_processes(made / "data") == []
    shutil.rmtree(made)


data_dir = pytest.fixture(_fresh_directory)
shared_data_dir = pytest.fixture(_fresh_directory, scope="module")


@pytest.fixture(scope="module")
def running(shared_data_dir: Path) -> Iterator[Up]:
    with up(shared_data_dir) as started:
        assert started.lines, started.errors()
        yield started


def test_up_says_where_it_is_and_how_to_sign_in(running: Up) -> None:
    ready, logins = running.lines
    assert ready.startswith(f"{READY}http://127.0.0.1:")
    assert "demo@klerai.local" in logins
    assert "admin@klerai.local" in logins


def test_website_and_worker_run_once_up_is_ready(running: Up) -> None:
    assert httpx.get(f"{running.url}/healthz").status_code == 200
    ready = httpx.get(f"{running.url}/readyz").json()
    assert ready["database"] == ready["migrations"] == ready["worker"] == "ok"


def test_the_user_guide_is_searchable_once_up_is_ready(running: Up, shared_data_dir: Path) -> None:
    found = manage("search", "How do daily credits reset?", "--json", KLERAI_DATA_DIR=str(shared_data_dir))
    first = json.loads(found.stdout)["results"][0]
    assert first["document"]["title"] == "Credits: what a question costs"
    assert "midnight in your own time zone" in first["text"]


def test_the_key_of_the_data_directory_is_private(running: Up, shared_data_dir: Path) -> None:
    assert (shared_data_dir / "secret_key").stat().st_mode & 0o777 == 0o600


@pytest.mark.thorough
def test_a_data_directory_in_use_names_the_running_address(running: Up, shared_data_dir: Path) -> None:
    refused = manage("up", "--port", "0", "--data", shared_data_dir)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert running.url in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert httpx.get(f"{running.url}/healthz").status_code == 200


@pytest.mark.thorough
def test_a_port_in_use_is_a_sentence(running: Up, data_dir: Path) -> None:
    port = urlsplit(running.url).port
    refused = manage("up", "--port", str(port), "--data", data_dir)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Port {port} is in use by another program.")
    assert not (data_dir / "postgres").exists()


@pytest.mark.thorough
def test_a_command_beside_up_uses_its_database_and_leaves_it_running(running: Up, shared_data_dir: Path) -> None:
    before = postgres_processes(shared_data_dir)
    checked = manage("migrate", "--check", KLERAI_DATA_DIR=str(shared_data_dir))
    assert checked.returncode == 0, checked.stderr
    assert postgres_processes(shared_data_dir) == before
    assert httpx.get(f"{running.url}/readyz").json()["database"] == "ok"


@pytest.mark.thorough
def test_after_a_kill_everything_is_kept_and_ctrl_c_stops_it_all(data_dir: Path) -> None:
    with up(data_dir, environment={"KLERAI_DEMO_PASSWORD": "first-password"}) as first:
        assert first.lines, first.errors()
        first.process.kill()
        assert first.end() == -signal.SIGKILL
    left = postgres_processes(data_dir)
    assert left != []

    bystander = EmbeddedServer(data_dir.parent / "bystander")
    bystander.start()
    with up(data_dir) as second:
        assert second.lines, second.errors()
        assert postgres_processes(data_dir) == left
        assert "brought up to date" not in second.errors()
        second.press_ctrl_c()
        assert second.end() == 0
        assert "Traceback" not in second.errors()
    assert postgres_processes(data_dir) == []
    assert postgres_processes(data_dir.parent / "bystander") != []
    bystander.stop()


@pytest.mark.thorough
def test_pressing_ctrl_c_twice_leaves_nothing_behind(data_dir: Path) -> None:
    with up(data_dir, "--no-demo") as started:
        assert started.lines == [f"{READY}{started.url}"], started.errors()
        found = manage("search", "How do daily credits reset?", "--json", KLERAI_DATA_DIR=str(data_dir))
        assert json.loads(found.stdout)["results"] == []
        started.press_ctrl_c()
        started.press_ctrl_c()
        started.end()
    assert postgres_processes(data_dir) == []


@pytest.mark.thorough
def test_ctrl_c_while_it_starts_leaves_nothing_behind(data_dir: Path) -> None:
    process = subprocess.Popen(
        ["python", "manage.py", "up", "--port", "0", "--data", str(data_dir)],
        env=plain_environment(),
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while process.poll() is None and not (data_dir / "postgres" / "data").exists():
        pass
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    assert process.returncode != 0
    assert postgres_processes(data_dir) == []


@needs_root
@pytest.mark.thorough
def test_a_normal_user_can_start_it(data_dir: Path) -> None:
    user = as_normal_user()
    data_dir.mkdir()
    os.chown(data_dir, user.uid, user.gid)
    with up(data_dir, user=user) as started:
        assert started.lines, started.errors()
        assert httpx.get(f"{started.url}/readyz").json()["database"] == "ok"
        started.press_ctrl_c()
        assert started.end() == 0
    assert postgres_processes(data_dir) == []


@needs_root
def test_a_data_directory_that_cannot_be_written_is_a_sentence(data_dir: Path) -> None:
    user = as_normal_user()
    data_dir.mkdir(mode=0o755)
    with up(data_dir, user=user) as refused:
        assert refused.end() == 1
        assert refused.errors().startswith(f"The data directory {data_dir} cannot be used: permission denied.")


@needs_root
@pytest.mark.thorough
@pytest.mark.parametrize("megabytes", [24, 42], ids=["while the database is made", "while tables are made"])
def test_a_full_disk_is_a_sentence(megabytes: int, data_dir: Path) -> None:
    data_dir.mkdir(mode=0o711)
    small = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0711", "tmpfs", str(data_dir)]
    if subprocess.run(small, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow mounting a small disk")
    try:
        with up(data_dir) as refused:
            assert refused.end() == 1
            errors = refused.errors()
        assert f"There is no space left on the disk of {data_dir}." in errors
        assert "Traceback" not in errors
    finally:
        subprocess.run(["umount", str(data_dir)], check=True)


@pytest.mark.parametrize("command", ["up", pytest.param("migrate", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1/klerai", "DATABASE_URL must be an address that starts with postgresql://"),
        pytest.param("postgresql://127.0.0.1:{free}/klerai", "refused", marks=pytest.mark.thorough),
        ("postgresql://klerai_app:wrong@{socket}/klerai", "password authentication failed"),
        pytest.param("{app}_that_is_not_there?passfile={passwords}", "does not exist", marks=pytest.mark.thorough),
    ],
    ids=["scheme", "port", "password", "name"],
)
def test_a_wrong_database_address_is_a_sentence(command: str, address: str, reason: str, data_dir: Path) -> None:
    embedded = EmbeddedServer(settings.TEST_DATA_DIR).url(APP)
    without_query, _, passwords = embedded.partition("?passfile=")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        given = address.format(
            free=closed.getsockname()[1],
            socket=without_query.partition("@")[2].partition("/")[0],
            app=without_query,
            passwords=passwords,
        )
        options = ("--port", "0", "--data", data_dir) if command == "up" else ()
        refused = manage(command, *options, DATABASE_URL=given, SECRET_KEY="x" * 50, EMAIL_URL="smtp://localhost")
    assert refused.returncode == 1
    assert reason in refused.stderr
    assert "DATABASE_URL" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "wrong@" not in refused.stderr


@pytest.mark.thorough
def test_a_command_before_the_first_start_says_what_makes_the_tables(data_dir: Path) -> None:
    tried = manage("ask", "Hello?", KLERAI_DATA_DIR=str(data_dir))
    assert tried.returncode == 1
    assert "“manage.py up” makes them" in tried.stderr
    assert "Traceback" not in tried.stderr


def test_another_host_needs_a_secret_key(data_dir: Path) -> None:
    refused = manage("up", "--host", "0.0.0.0", "--port", "0", "--data", data_dir)
    assert refused.returncode == 1
    assert refused.stderr.startswith("SECRET_KEY is missing.")
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.thorough
def test_a_person_cannot_turn_local_mode_on_by_a_variable(data_dir: Path) -> None:
    refused = manage("serve", "--port", "0", KLERAI_LOCAL="1", KLERAI_DATA_DIR=str(data_dir))
    assert refused.returncode == 1
    assert refused.stderr.startswith("SECRET_KEY is missing.")


def test_nonsense_in_a_setting_names_the_variable(data_dir: Path) -> None:
    refused = manage("up", "--port", "0", "--data", data_dir, KLERAI_MAX_RUNS="many")
    assert refused.returncode == 1
    assert refused.stderr.startswith("KLERAI_MAX_RUNS")
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.thorough
def test_the_env_file_speaks_unless_the_environment_does(data_dir: Path) -> None:
    data_dir.mkdir()
    file = data_dir / ".env"
    file.write_text("SECRET_KEY=from-the-file\nKLERAI_MAX_RUNS=many\n")
    command = f"sys.exit(launch(['manage.py', 'diffsettings'], env_file=Path({str(file)!r})))"
    start = [sys.executable, "-c", f"import sys; from pathlib import Path; from klerai.launch import launch; {command}"]
    refused, accepted = (
        subprocess.run(
            start,
            cwd=settings.BASE_DIR,
            env=plain_environment(**extra),
            capture_output=True,
            text=True,
            check=False,
        )
        for extra in ({}, {"KLERAI_MAX_RUNS": "7"})
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("KLERAI_MAX_RUNS")
    assert "MAX_RUNS = 7 " in accepted.stdout
    assert "SECRET_KEY = 'from-the-file'" in accepted.stdout


@pytest.mark.thorough
def test_serve_and_worker_share_the_database_and_the_last_one_stops_it(data_dir: Path) -> None:
    deployed = {"SECRET_KEY": "x" * 50, "EMAIL_URL": "smtp://localhost", "KLERAI_DATA_DIR": str(data_dir)}
    assert manage("migrate", "--verbosity=0", **deployed).returncode == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        background("worker", **deployed) as worker,
        background("serve", "--host", "127.0.0.1", "--port", str(port), ALLOWED_HOSTS="127.0.0.1", **deployed) as web,
    ):
        transport = httpx.HTTPTransport(retries=10)
        with httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            while client.get("/readyz").json()["worker"] != "ok":
                assert worker.poll() is None
            assert client.get("/readyz").status_code == 200
        worker.send_signal(signal.SIGTERM)
        assert worker.wait() == 0
        assert postgres_processes(data_dir) != []
        web.send_signal(signal.SIGTERM)
        assert web.wait() == 0
    assert postgres_processes(data_dir) == []


@pytest.mark.thorough
def test_help_starts_no_database(data_dir: Path) -> None:
    helped = manage("up", "--help", KLERAI_DATA_DIR=str(data_dir))
    assert helped.returncode == 0
    assert "--no-demo" in helped.stdout
    assert not (data_dir / "postgres").exists()
