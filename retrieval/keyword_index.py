"""Keeping what BM25 counts in step with the chunks that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from retrieval.analysis import terms
from retrieval.models import Chunk, KeywordStatistics, KnowledgeBase

_ADD_STATISTICS = """
INSERT INTO retrieval_keywordstatistics AS held (knowledge_base_id, chunks, total_length) VALUES (%s, %s, %s)
ON CONFLICT (knowledge_base_id) DO UPDATE
SET chunks = held.chunks + excluded.chunks, total_length = held.total_length + excluded.total_length
"""
_ADD_TERMS = """
INSERT INTO retrieval_term AS held (knowledge_base_id, lexeme, chunks)
SELECT %s, fresh.lexeme, fresh.chunks FROM unnest(%s::text[], %s::integer[]) AS fresh (lexeme, chunks)
ON CONFLICT (knowledge_base_id, lexeme) DO UPDATE SET chunks = held.chunks + excluded.chunks
RETURNING id, lexeme
"""
_FORGET = """
WITH gone AS (
    DELETE FROM retrieval_indexedchunk indexed USING retrieval_chunk chunk
    WHERE chunk.id = indexed.chunk_id AND chunk.document_id = %s
    RETURNING indexed.chunk_id, indexed.length, indexed.term_ids
), pair AS MATERIALIZED (
    SELECT unnest(term_ids) AS term_id, chunk_id FROM gone
), posting AS (
    DELETE FROM retrieval_posting posting USING pair
    WHERE posting.term_id = pair.term_id AND posting.chunk_id = pair.chunk_id
), counted AS (
    UPDATE retrieval_term term SET chunks = term.chunks - lost.chunks
    FROM (SELECT term_id, count(*) AS chunks FROM pair GROUP BY term_id) lost
    WHERE term.id = lost.term_id
    RETURNING term.id, term.chunks
), statistics AS (
    UPDATE retrieval_keywordstatistics SET
        chunks = chunks - (SELECT count(*) FROM gone),
        total_length = total_length - (SELECT coalesce(sum(length), 0) FROM gone)
    WHERE knowledge_base_id = %s
)
SELECT coalesce(array_agg(id), '{}') FROM counted WHERE chunks = 0
"""
# What PostgreSQL's binary COPY calls a row of a posting: each field behind its size in bytes.
_POSTING = np.dtype(
    [("fields", ">i2")]
    + [
        part
        for name, kind, size in (
            ("term", ">i8", 8),
            ("chunk", ">i8", 8),
            ("occurrences", ">f4", 4),
            ("length", ">f4", 4),
        )
        for part in ((f"{name}_size", ">i4"), (name, kind))
    ]
)
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class _Analysed:
    chunk_id: int
    length: int
    occurrences: Counter[str]


@transaction.atomic
def index_chunks(knowledge_base: KnowledgeBase, chunks: Sequence[Chunk]) -> None:
    """Let saved chunks be found by the words of their text and section. Once for each chunk.

    Until the transaction ends nobody else changes the keyword index of this knowledge base, so that two documents
    cannot wait for each other's words in turn: call it late, and embed before.
    """
    analysed = [_analysed(chunk) for chunk in chunks]
    if not analysed:
        return
    counts = Counter(lexeme for each in analysed for lexeme in each.occurrences)
    lexemes = sorted(counts)
    with connection.cursor() as cursor:
        total_length = sum(each.length for each in analysed)
        cursor.execute(_ADD_STATISTICS, [knowledge_base.pk, len(analysed), total_length])
        cursor.execute(_ADD_TERMS, [knowledge_base.pk, lexemes, [counts[lexeme] for lexeme in lexemes]])
        ids = {lexeme: term_id for term_id, lexeme in cursor.fetchall()}
        _copy_postings(cursor, analysed, ids)
        cursor.executemany(
            "INSERT INTO retrieval_indexedchunk (chunk_id, length, term_ids) VALUES (%s, %s, %s::bigint[])",
            [(each.chunk_id, each.length, [ids[lexeme] for lexeme in each.occurrences]) for each in analysed],
        )


@transaction.atomic
def forget_document(document_id: UUID) -> None:
    """Take a document's chunks out of the keyword index; before they are deleted, in the same transaction."""
    statistics = KeywordStatistics.objects.filter(knowledge_base__documents=document_id)
    if (held := statistics.select_for_update(of=("self",)).first()) is None:
        return
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [document_id, held.knowledge_base_id])
        (unused,) = cursor.fetchone()
        cursor.execute("DELETE FROM retrieval_term WHERE id = ANY(%s::bigint[])", [unused])


def _analysed(chunk: Chunk) -> _Analysed:
    found = terms(f"{chunk.section}\n{chunk.text}")
    return _Analysed(chunk.pk, len(found), Counter(found))


def _copy_postings(cursor: Any, analysed: Sequence[_Analysed], ids: dict[str, int]) -> None:
    """Write all postings in one stream, in the order of their index."""
    rows: NDArray[np.void] = np.zeros(sum(len(each.occurrences) for each in analysed), dtype=_POSTING)
    sizes = np.array([len(each.occurrences) for each in analysed])
    rows["fields"] = 4
    rows["term_size"] = rows["chunk_size"] = 8
    rows["occurrences_size"] = rows["length_size"] = 4
    rows["term"] = [ids[lexeme] for each in analysed for lexeme in each.occurrences]
    rows["chunk"] = np.repeat([each.chunk_id for each in analysed], sizes)
    rows["occurrences"] = [count for each in analysed for count in each.occurrences.values()]
    rows["length"] = np.repeat([each.length for each in analysed], sizes)
    rows = rows[np.lexsort((rows["chunk"], rows["term"]))]
    columns = "retrieval_posting (term_id, chunk_id, occurrences, length)"
    with cursor.copy(f"COPY {columns} FROM STDIN (FORMAT binary)") as copy:
        copy.write(_COPY_HEAD + rows.tobytes() + _COPY_END)
