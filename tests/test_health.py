"""Whether the process lives, and whether what it needs is there."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from procrastinate.contrib.django import app


def ready() -> tuple[int, dict[str, object]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()


def forget_workers() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")


def test_a_living_process_says_ok_and_asks_no_database() -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the database was asked")

    with connection.execute_wrapper(refuse):
        answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]


def test_without_a_worker_the_product_is_not_ready_and_says_why() -> None:
    forget_workers()
    status, body = ready()
    assert status == 503
    assert body["ready"] is False
    assert (body["database"], body["pgvector"], body["migrations"]) == ("ok", "ok", "ok")
    assert "No worker was seen lately" in str(body["worker"])


async def test_with_a_worker_the_product_is_ready() -> None:
    await sync_to_async(forget_workers)()
    worker = app.with_connector(app.connector.get_worker_connector())
    async with worker.open_async():
        running = asyncio.create_task(
            worker.run_worker_async(queues=["nothing"], install_signal_handlers=False, listen_notify=False)
        )
        for _ in range(200):
            status, body = await sync_to_async(ready)()
            if status == 200:
                break
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert body == {"ready": True, "database": "ok", "pgvector": "ok", "migrations": "ok", "worker": "ok"}


def test_a_missing_migration_is_counted() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions' RETURNING name")
        names = [row[0] for row in cursor.fetchall()]
    try:
        status, body = ready()
        assert status == 503
        assert "Migrations missing: 1" in str(body["migrations"])
    finally:
        for name in names:
            MigrationRecorder(connection).record_applied("sessions", name)


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_health_is_read_only(address: str) -> None:
    assert Client().post(address).status_code == 405
