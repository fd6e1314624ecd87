"""Whatever is sent to the API: no answer is a bug of ours, and every answer is one that its description names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.db import connection

from billing import credits
from klerai.accounts.keys import create_key
from klerai.accounts.models import Person
from tests.people import make_alice
from tests.plans import on_plan

IS_FULL = os.environ.get("KLERAI_FULL") == "1"
EXAMPLES, PHASES = ("100", "examples,coverage,fuzzing,stateful") if IS_FULL else ("8", "coverage,fuzzing")
SEED = os.environ.get("KLERAI_SEED", "1")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


@pytest.fixture
def can_fuzz() -> None:
    """Says what is missing; with KLERAI_REQUIRE_FUZZ=1 that is a failure."""
    if find_spec("schemathesis") is not None:
        return
    reason = "schemathesis is not installed, so the API was not fuzzed: uv sync --group fuzz"
    if os.environ.get("KLERAI_REQUIRE_FUZZ") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def rich_alice() -> Person:
    """Somebody whom no limit stops, so that what lies behind the limits is reached."""
    alice = on_plan(make_alice())
    credits.grant(alice, amount=100_000, reason="To be spent by a program")
    return alice


@pytest.fixture
def _worker() -> Iterator[None]:
    """Where no worker reports, `/readyz` rightly answers 503."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() + interval '1 hour') RETURNING id"
        )
        worker = cursor.fetchone()[0]
        yield
        cursor.execute("DELETE FROM procrastinate_workers WHERE id = %s", [worker])


@pytest.mark.thorough
@pytest.mark.usefixtures("can_fuzz", "_worker")
def test_nothing_that_is_sent_breaks_the_api_or_its_description(
    server: str, rich_alice: Person, tmp_path: Path
) -> None:
    key = create_key(rich_alice, "fuzz")[1]
    options = [
        *("--header", f"Authorization: Bearer {key}"),
        *("--checks", ",".join(CHECKS)),
        *("--phases", PHASES),
        *("--max-examples", EXAMPLES),
        *("--seed", SEED),
        *("--workers", "1"),
        *("--request-timeout", "60"),
        *("--generation-database", "none"),
        "--no-color",
    ]
    ran = subprocess.run(
        [Path(sys.executable).with_name("st"), "run", f"{server}/api/schema/", *options],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))},
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout[-2_000:])
    assert ran.returncode == 0, ran.stdout[-30_000:] + ran.stderr[-2_000:]
