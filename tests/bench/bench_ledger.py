"""Hold and settle through Django, beside the plain “SELECT … FOR UPDATE, then insert”, on one account and on 1,000.

    uv run python -m tests.bench.bench_ledger [--seconds 5]

Both run on the same durable embedded PostgreSQL in the same run; what counts is the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool

from klerai.postgres import APP, OWNER, EmbeddedServer

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENTS = (1, 16)
PEOPLE = (1, 1_000)
ROUNDS = 3
TABLES = """
    CREATE TABLE reference_account (
        id bigint PRIMARY KEY, balance numeric(20, 6) NOT NULL CHECK (balance >= 0), ver bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 70);
    CREATE TABLE reference_ledger (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        account_id bigint NOT NULL REFERENCES reference_account (id),
        amount numeric(20, 6) NOT NULL, balance_after numeric(20, 6) NOT NULL,
        key uuid NOT NULL UNIQUE, created timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX ON reference_ledger (account_id, id);
    INSERT INTO reference_account SELECT number, 1000000 FROM generate_series(1, 1000) number;
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """How many of something a second, and the milliseconds half and 95 % of them took at most."""

    per_second: float
    p50_ms: float
    p95_ms: float

    @classmethod
    def of(cls, seconds_each: list[float], *, wall_seconds: float) -> Measured:
        ranks = statistics.quantiles(seconds_each, n=100)
        return cls(len(seconds_each) / wall_seconds, 1000 * ranks[49], 1000 * ranks[94])

    def __str__(self) -> str:
        return f"{self.per_second:7.0f}/s  p50 {self.p50_ms:6.2f} ms  p95 {self.p95_ms:6.2f} ms"


async def deduct(db: psycopg.AsyncConnection[Any], account: int) -> None:
    """The reference: one deduction and its entry."""
    async with db.transaction():
        found = await db.execute("SELECT balance FROM reference_account WHERE id = %s FOR UPDATE", [account])
        (balance,) = await found.fetchone() or (0,)
        after = balance - 1
        await db.execute("UPDATE reference_account SET balance = %s, ver = ver + 1 WHERE id = %s", [after, account])
        await db.execute(
            "INSERT INTO reference_ledger (account_id, amount, balance_after, key) VALUES (%s, -1, %s, %s)",
            [account, after, uuid.uuid4()],
        )


async def measure_reference(url: str, *, clients: int, people: int, seconds: float) -> Measured:
    took: list[float] = []
    async with psycopg_pool.AsyncConnectionPool(
        url, min_size=clients, max_size=clients, kwargs={"autocommit": True}, open=False
    ) as pool:
        await pool.wait()
        end = time.perf_counter() + seconds

        async def client() -> None:
            while (begun := time.perf_counter()) < end:
                async with pool.connection() as db:
                    await deduct(db, random.randint(1, people))
                took.append(time.perf_counter() - begun)

        begun = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return Measured.of(took, wall_seconds=time.perf_counter() - begun)


def measure_ours(pay: Callable[[], None], *, clients: int, seconds: float) -> Measured:
    from django.db import connection

    took: list[float] = []
    start = threading.Barrier(clients, timeout=30)
    connection.close()  # the pool has as many connections as there are clients

    def client(_: int) -> None:
        try:
            pay()  # connect before the clock runs
            start.wait()
            end = time.perf_counter() + seconds
            while (begun := time.perf_counter()) < end:
                pay()
                took.append(time.perf_counter() - begun)
        finally:
            connection.close()

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    return Measured.of(took, wall_seconds=seconds)


def compare(url: str, pay: Callable[[], None], *, people: int, clients: int, seconds: float) -> None:
    """Both in turn, on as many connections as there are clients."""
    ratios: list[float] = []
    print(f"{people:,} account{'s' * (people > 1)}, a pool of {clients}, {ROUNDS} rounds of {seconds:g} s each")
    for _ in range(ROUNDS):
        reference = asyncio.run(measure_reference(url, clients=clients, people=people, seconds=seconds))
        ours = measure_ours(pay, clients=clients, seconds=seconds)
        ratios.append(2 * ours.per_second / reference.per_second)
        print(f"  reference: deductions        {reference}")
        print(f"  ours: hold and settle, pairs {ours}")
    middle = statistics.median(ratios)
    print(f"  ratio of movements, two a pair: {middle:.2f}; of pairs: {middle / 2:.2f} (medians)")


def run(url: str, *, seconds: float) -> None:
    from billing import audit, credits
    from billing.pricing import base_line
    from klerai.accounts.models import Person

    for people in PEOPLE:
        spenders = [Person.objects.create_user(f"bench-{people}-{number}@example.org") for number in range(people)]
        for person in spenders:
            for _ in range(10 if people == 1 else 1):
                credits.grant(person, amount=credits.MOST_PER_GRANT, reason="To be spent")

        def pay(spenders: list[Person] = spenders) -> None:
            run_id, person = uuid.uuid4(), random.choice(spenders)
            credits.hold(person, run_id=run_id, amount=5)
            credits.settle(person, run_id=run_id, lines=[base_line()])

        for clients in CLIENTS:
            compare(url, pay, people=people, clients=clients, seconds=seconds)
    print(f"violations: {len(audit.violations())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="klerai-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # the way through for the account the server runs as
        server = EmbeddedServer(Path(folder) / "data")
        server.start()
        try:
            os.environ |= {"DATABASE_URL": server.url(OWNER), "SECRET_KEY": "bench-" + "x" * 50}
            os.environ["DJANGO_SETTINGS_MODULE"] = "klerai.settings"
            subprocess.run([sys.executable, ROOT / "manage.py", "migrate", "--verbosity=0"], check=True, cwd=ROOT)
            with psycopg.connect(server.url(OWNER), autocommit=True) as db:
                db.execute(TABLES)
            os.environ["DATABASE_URL"] = server.url(APP)

            import django

            django.setup()
            run(server.url(APP), seconds=seconds)
            from django.db import connections
            from django.db.backends.postgresql.base import DatabaseWrapper

            ours = connections["default"]
            assert isinstance(ours, DatabaseWrapper)
            ours.close()
            ours.close_pool()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
