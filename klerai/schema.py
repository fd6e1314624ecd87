"""The tables as the code expects them."""

from __future__ import annotations

import os
import subprocess
import sys

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from klerai.instance import Refused
from klerai.postgres import OWNER, EmbeddedServer


def bring_up_to_date(server: EmbeddedServer | None) -> None:
    """Apply pending migrations: on the embedded server as its owner, since this process may not change tables."""
    executor = MigrationExecutor(connection)
    is_pending = bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    connection.close()
    if not is_pending:
        return
    print("The database is brought up to date.", file=sys.stderr)
    if server is None:
        call_command("migrate", interactive=False, skip_checks=True, verbosity=0)
    else:
        _migrate_as_owner(server)


def _migrate_as_owner(server: EmbeddedServer) -> None:
    done = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "--no-input", "--skip-checks", "-v0"],
        env={**os.environ, "DATABASE_URL": server.url(OWNER)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        if trouble := server.trouble(done.stdout):
            raise trouble
        sys.stderr.write(done.stdout)
        raise Refused("The database could not be brought up to date; the reason stands above. Nothing is lost.")
