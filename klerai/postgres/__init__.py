"""A PostgreSQL of our own inside the data directory, for a machine that has none."""

from __future__ import annotations

from klerai.postgres.errors import PostgresError
from klerai.postgres.server import APP, OWNER, EmbeddedServer

__all__ = ["APP", "OWNER", "EmbeddedServer", "PostgresError"]
