"""Whether this process lives, and whether the product around it can answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from procrastinate.contrib.django.models import ProcrastinateWorker

OK = "ok"
WORKER_SEEN_WITHIN = timedelta(seconds=40)


@csrf_exempt
@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Alive. Touches nothing, so that a sick database does not get healthy processes killed."""
    return HttpResponse("ok\n", content_type="text/plain")


@csrf_exempt
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Each part is "ok" or a sentence; 503 unless all are ok."""
    parts = readiness()
    is_ready = all(part == OK for part in parts.values())
    return JsonResponse({"ready": is_ready, **parts}, status=200 if is_ready else 503)


def readiness() -> dict[str, str]:
    """Each part of the product: "ok", or a sentence that says what to do."""
    return {
        "database": _sentence(_database),
        "pgvector": _sentence(_pgvector),
        "migrations": _sentence(_migrations),
        "worker": _sentence(_worker),
    }


def _sentence(check: Callable[[], str]) -> str:
    try:
        return check()
    except DatabaseError:
        return "The database does not answer."


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def _pgvector() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        return (
            OK if cursor.fetchone() else "The extension “vector” is not there; an owner of the database must create it."
        )


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    return f"Migrations missing: {missing}. Run “manage.py migrate”." if missing else OK


def _worker() -> str:
    """Procrastinate's workers report every few seconds."""
    is_there = ProcrastinateWorker.objects.filter(last_heartbeat__gte=timezone.now() - WORKER_SEEN_WITHIN).exists()
    return OK if is_there else "No worker was seen lately: mail and other jobs wait. Start “manage.py worker”."
