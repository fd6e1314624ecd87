"""Changing a knowledge base over to another embedder, while it is searched and written."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from klerai.database import in_database
from retrieval.embedders.base import Embedder
from retrieval.models import Chunk, KnowledgeBase, Window
from retrieval.vector_index import ensure_index
from retrieval.window_vectors import fill_windows

BATCH_CHUNKS = 200
_LISTED = 5_000
_REMOVED = 5_000


async def reembed(
    knowledge_base_id: UUID,
    embedder: Embedder,
    *,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Fill the new embedder's windows and switch to them in one statement; how many chunks were filled.

    Until the switch everything is searched by the old embedder, whose windows go later with `remove_old_windows`, when
    nobody can be searching them any more. What is stored is kept when this ends in the middle, so doing it again goes
    on from there. `report` is told the chunks done and those there are. Raises EmbedderFailed.
    """
    filled, is_live = 0, False
    while not is_live:
        filled += await _fill(knowledge_base_id, embedder, report)
        await in_database(ensure_index, embedder.name, embedder.dimension)
        is_live = await in_database(_switch, knowledge_base_id, embedder.name)
    return filled


def remove_old_windows(knowledge_base_id: UUID) -> int:
    """Delete the windows of every embedder but the live one; how many they were."""
    removed = 0
    while batch := _remove_some(knowledge_base_id):
        removed += batch
    return removed


async def _fill(knowledge_base_id: UUID, embedder: Embedder, report: Callable[[int, int], None]) -> int:
    total, missing = await in_database(_count, knowledge_base_id, embedder.name)
    done = total - missing
    report(done, total)
    filled = 0
    while listed := await in_database(_list_missing, knowledge_base_id, embedder.name):
        for start in range(0, len(listed), BATCH_CHUNKS):
            batch = listed[start : start + BATCH_CHUNKS]
            await fill_windows(knowledge_base_id, batch, embedder)
            filled += len(batch)
            report(done + filled, max(total, done + filled))
    return filled


def _missing(knowledge_base_id: UUID, embedder: str) -> QuerySet[Chunk]:
    windows = Window.objects.filter(chunk=OuterRef("pk"), embedder=embedder)
    return Chunk.objects.filter(~Exists(windows), knowledge_base=knowledge_base_id)


def _count(knowledge_base_id: UUID, embedder: str) -> tuple[int, int]:
    total = Chunk.objects.filter(knowledge_base=knowledge_base_id).count()
    return total, _missing(knowledge_base_id, embedder).count()


def _list_missing(knowledge_base_id: UUID, embedder: str) -> list[int]:
    found = _missing(knowledge_base_id, embedder).order_by("pk").values_list("pk", flat=True)
    return list(found[:_LISTED])


@transaction.atomic
def _switch(knowledge_base_id: UUID, embedder: str) -> bool:
    """False when a chunk came in that has no window yet. The lock keeps more of them out: they refer to this row."""
    KnowledgeBase.objects.select_for_update().get(pk=knowledge_base_id)
    if _missing(knowledge_base_id, embedder).exists():
        return False
    KnowledgeBase.objects.filter(pk=knowledge_base_id).update(embedder=embedder)
    return True


@transaction.atomic
def _remove_some(knowledge_base_id: UUID) -> int:
    """The lock keeps the live embedder what it is until these are gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT embedder FROM retrieval_knowledgebase WHERE id = %s FOR KEY SHARE", [knowledge_base_id])
        live = cursor.fetchone()
        cursor.execute(
            "DELETE FROM retrieval_window WHERE id IN"
            " (SELECT id FROM retrieval_window WHERE knowledge_base_id = %s AND embedder <> %s LIMIT %s)",
            [knowledge_base_id, live[0] if live else "", _REMOVED],
        )
        return int(cursor.rowcount)
