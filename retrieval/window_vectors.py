"""The vectors of a knowledge base's chunks, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection, transaction
from pgvector.psycopg import register_vector

from klerai.database import in_database
from retrieval.embedders.base import Embedder, Vector
from retrieval.models import Chunk, Window
from retrieval.windows import windows_of

_COLUMNS = "knowledge_base_id, chunk_id, embedder, position, vector"
_TYPES = ("uuid", "int8", "varchar", "int2", "vector")


@transaction.atomic
def store_windows(knowledge_base_id: UUID, embedder: str, rows: Sequence[tuple[int, Vector]]) -> str:
    """Put vectors, each with its chunk and these in order, in the place of those by the same embedder.

    Chunks that are gone are passed over. Gives the name of the embedder that is live now, which stays so until the
    transaction ends: where it is another one, what was stored is not searched.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT embedder FROM retrieval_knowledgebase WHERE id = %s FOR KEY SHARE", [knowledge_base_id])
        found = cursor.fetchone()
    if found is None:
        return ""
    chunks = Chunk.objects.filter(knowledge_base=knowledge_base_id, pk__in={chunk for chunk, _ in rows})
    still_there = set(chunks.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
    Window.objects.filter(chunk__in=still_there, embedder=embedder)._raw_delete(using="default")
    _copy(knowledge_base_id, embedder, [(chunk, vector) for chunk, vector in rows if chunk in still_there])
    return str(found[0])


async def fill_windows(knowledge_base_id: UUID, chunk_ids: Sequence[int], embedder: Embedder) -> None:
    """Make and store the vectors of chunks, all in one transaction. Raises EmbedderFailed."""
    texts = await in_database(_texts, chunk_ids)
    windows = [(chunk, window) for chunk, text in texts for window in windows_of(text) or [text]]
    vectors = await embedder.batch_embed([window for _, window in windows])
    rows = [(chunk, vector) for (chunk, _), vector in zip(windows, vectors, strict=True)]
    await in_database(store_windows, knowledge_base_id, embedder.name, rows)


def _texts(chunk_ids: Sequence[int]) -> list[tuple[int, str]]:
    return list(Chunk.objects.filter(pk__in=chunk_ids).order_by("pk").values_list("pk", "text"))


def _copy(knowledge_base_id: UUID, embedder: str, rows: Sequence[tuple[int, Vector]]) -> None:
    """In binary, which is twelve times as fast as statements with numbers in words."""
    register_vector(connection.connection)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY retrieval_window ({_COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(_TYPES)
        position, previous = 0, None
        for chunk, vector in rows:
            position = position + 1 if chunk == previous else 0
            previous = chunk
            copy.write_row((knowledge_base_id, chunk, embedder, position, vector))
