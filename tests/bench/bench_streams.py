"""CPU a token of the web process at 1, 50 and 200 streams, beside a plain relay on the same machine in the same run.

The event log's share is the difference between KlerAI and the same without its writing (unlogged.py).

`python -m tests.bench.bench_streams --streams 1 50 200`. Two cores: the server under test alone on the first, the
model, the load and PostgreSQL on the second. 60 tokens at 50 a second for each stream, two questions each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django
import psutil
from django.conf import settings

django.setup()

from billing.credits import grant
from klerai.accounts.keys import create_key
from klerai.accounts.models import Person
from tests.database import made_for_this_process
from tests.fakes.anthropic import running_anthropic

ROOT = Path(__file__).resolve().parents[2]
PLAN = "[[plan tokens=60 ttft={ttft} itd={gap}]] hello"
ROUNDS = 2
MODEL_FIRST_MS = 50
SERVER_CORE, OTHER_CORE = [0], [1]


@dataclass(frozen=True)
class Measured:
    cpu_us_a_token: float
    database_us_a_token: float
    tokens: int
    first_p50_ms: float
    first_p95_ms: float


@contextmanager
def server(application: str, port: int, environment: dict[str, str]) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), "--log-level", "warning"]
    command += ["--ws", "websockets-sansio", "--no-access-log"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
    try:
        watched = psutil.Process(process.pid)
        watched.cpu_affinity(SERVER_CORE)
        _wait_for(port)
        yield watched
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(port: int) -> None:
    import socket

    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("The server did not start.")


def load(port: int, kind: str, tokens: Path, n: int, plan: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.load", str(port), kind, str(tokens), str(n), str(ROUNDS), plan]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    psutil.Process(process.pid).cpu_affinity(OTHER_CORE)
    written, _ = process.communicate(timeout=120)
    found: dict[str, Any] = json.loads(written)
    return found


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def database_seconds() -> float:
    pid = int((settings.TEST_DATA_DIR / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    postgres = psutil.Process(pid)
    total = 0.0
    for process in [postgres, *postgres.children(recursive=True)]:
        if process.cpu_affinity() != OTHER_CORE:
            process.cpu_affinity(OTHER_CORE)
        total += cpu_seconds(process)
    return total


def measure(process: psutil.Process, port: int, kind: str, tokens: Path, n: int, plan: str) -> Measured:
    load(port, kind, tokens, 1, plan)
    before, database_before = cpu_seconds(process), database_seconds()
    found = load(port, kind, tokens, n, plan)
    spent, database = cpu_seconds(process) - before, database_seconds() - database_before
    count = found["tokens"]
    if count != n * ROUNDS * 60:
        print(f"  {kind}: {count} tokens came, {n * ROUNDS * 60} were said")
    return Measured(
        spent * 1e6 / max(1, count),
        database * 1e6 / max(1, count),
        count,
        found["first_p50_ms"] - MODEL_FIRST_MS,
        found["first_p95_ms"] - MODEL_FIRST_MS,
    )


def people(n: int, file: Path) -> None:
    tokens = []
    for _ in range(n):
        person = Person.objects.create_user(f"bench-{uuid.uuid4().hex[:10]}@example.org", None)
        grant(person, amount=10_000, reason="bench")
        tokens.append(create_key(person, "bench")[1])
    file.write_text("\n".join(tokens))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 50, 200])
    parser.add_argument("--gap", type=float, default=20, help="milliseconds between tokens")
    arguments = parser.parse_args()
    plan = PLAN.format(ttft=MODEL_FIRST_MS, gap=arguments.gap)
    with tempfile.TemporaryDirectory() as folder, made_for_this_process(), running_anthropic() as fake:
        for process in psutil.Process().children(recursive=True):
            process.cpu_affinity(OTHER_CORE)
        tokens = Path(folder) / "tokens"
        people(max(arguments.streams), tokens)
        product = {
            "DJANGO_SETTINGS_MODULE": "klerai.settings",
            "KLERAI_STRATEGY": "anthropic",
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": fake.url,
            "ALLOWED_HOSTS": "127.0.0.1",
            "KLERAI_MAX_RUNS": "1000",
        }
        print("streams   server    CPU µs/token   database µs/token   first token added p50 / p95 ms")
        for n in arguments.streams:
            with server("tests.bench.relay:application", 8951, {"VENDOR": fake.url}) as process:
                relay = measure(process, 8951, "relay", tokens, n, plan)
            with server("tests.bench.unlogged:application", 8952, product) as process:
                unlogged = measure(process, 8952, "klerai", tokens, n, plan)
            with server("klerai.asgi:application", 8953, product) as process:
                ours = measure(process, 8953, "klerai", tokens, n, plan)
            for name, found in (("relay", relay), ("unlogged", unlogged), ("KlerAI", ours)):
                print(
                    f"{n:7}   {name:8}  {found.cpu_us_a_token:12.0f}   {found.database_us_a_token:17.0f}   "
                    f"{found.first_p50_ms:8.0f} / {found.first_p95_ms:.0f}"
                )
            ratio, whole = (each.cpu_us_a_token / relay.cpu_us_a_token for each in (unlogged, ours))
            print(
                f"          ratio     {ratio:12.2f}   without the event log (target: at most 1.5), {whole:.2f} with it"
            )


if __name__ == "__main__":
    main()
