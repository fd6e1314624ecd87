"""When vectors are compared one by one and when by an approximate index, and the making of that index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from retrieval.models import KnowledgeBase, Window

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


def count_windows(embedder: str, scope: Sequence[UUID], *, chunks: int) -> Windows:
    """`chunks` are those of the scope, each of which has a window at least: many of them need no counting."""
    with connection.cursor() as cursor:
        in_index = _in_index(cursor, embedder)
        if not in_index or chunks > MOST_COMPARED:
            return Windows(chunks, in_index)
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM retrieval_window WHERE knowledge_base_id = ANY(%s::uuid[])"
            " AND embedder = %s LIMIT %s) counted",
            [list(scope), embedder, MOST_COMPARED + 1],
        )
        return Windows(cursor.fetchone()[0], in_index)


def ensure_index(embedder: str, dimension: int) -> bool:
    """Have the approximate index of an embedder once there are windows enough for it; whether there is one now.

    Building it takes about a minute for a hundred thousand windows, in which windows can be read but not written.
    """
    with connection.cursor() as cursor:
        if _in_index(cursor, embedder):
            return True
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM retrieval_window WHERE embedder = %s LIMIT %s) counted",
            [embedder, MOST_COMPARED + 1],
        )
        if cursor.fetchone()[0] <= MOST_COMPARED:
            return False
        cursor.execute("SELECT retrieval_index_windows(%s, %s, %s)", [embedder, dimension, _index_name(embedder)])
    return True


def ensure_indexes() -> None:
    """Have those of all embedders that knowledge bases use."""
    for embedder in KnowledgeBase.objects.exclude(embedder="").values_list("embedder", flat=True).distinct():
        window = Window.objects.filter(embedder=embedder).first()
        if window is not None:
            ensure_index(embedder, len(window.vector))


def _in_index(cursor: CursorWrapper, embedder: str) -> int:
    """About how many windows the index holds; 0 when there is none."""
    cursor.execute("SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = to_regclass(%s)", [_index_name(embedder)])
    found = cursor.fetchone()
    return int(found[0]) if found else 0


def _index_name(embedder: str) -> str:
    return f"retrieval_window_near_{hashlib.sha256(embedder.encode()).hexdigest()[:16]}"
