"""When vectors are compared one by one and when by an approximate index, and the making of that index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

MOST_COMPARED = 20_000
# Among windows of others an approximate search looks in vain: a scope this small a part of its index is compared.
_SMALLEST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Windows:
    """How many windows a scope has, up to one more than are compared, and how many its embedder's index holds."""

    in_scope: int
    in_index: int

    @property
    def are_compared(self) -> bool:
        """Whether an exact search is the right one."""
        if self.in_scope <= MOST_COMPARED or not self.in_index:
            return True
        return self.in_scope < _SMALLEST_SHARE * self.in_index


def windows_of(embedder: str, scope: Sequence[UUID], *, at_least: int) -> Windows:
    """`at_least` is what is known of the scope already: its chunks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = to_regclass(%s)", [_index_name(embedder)]
        )
        index = cursor.fetchone()
        if index is None or at_least > MOST_COMPARED:
            return Windows(at_least, int(index[0]) if index else 0)
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM retrieval_window WHERE knowledge_base_id = ANY(%s::uuid[])"
            " AND embedder = %s LIMIT %s) counted",
            [list(scope), embedder, MOST_COMPARED + 1],
        )
        return Windows(cursor.fetchone()[0], int(index[0]))


def ensure_index(embedder: str, dimension: int) -> bool:
    """Have the approximate index of an embedder once there are windows enough for it; whether there is one now.

    Building it takes about a minute for a hundred thousand windows, in which windows can be read but not written.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM retrieval_window WHERE embedder = %s LIMIT %s) counted",
            [embedder, MOST_COMPARED + 1],
        )
        if cursor.fetchone()[0] <= MOST_COMPARED:
            return False
        cursor.execute("SELECT retrieval_index_windows(%s, %s, %s)", [embedder, dimension, _index_name(embedder)])
    return True


def _index_name(embedder: str) -> str:
    return f"retrieval_window_near_{hashlib.sha256(embedder.encode()).hexdigest()[:16]}"
