"""Keeping what BM25 counts in step with the chunks that are there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from retrieval.analysis import terms
from retrieval.models import Chunk, KeywordStatistics, KnowledgeBase
from retrieval.postings import CHUNKS_A_BLOCK, Counted, blocks_of, without

_ADD_STATISTICS = """
INSERT INTO retrieval_keywordstatistics AS held (knowledge_base_id, chunks, total_length, next_number)
VALUES (%(base)s, %(chunks)s, %(length)s, %(chunks)s)
ON CONFLICT (knowledge_base_id) DO UPDATE
SET chunks = held.chunks + excluded.chunks, total_length = held.total_length + excluded.total_length,
    next_number = held.next_number + excluded.next_number
RETURNING next_number - %(chunks)s
"""
_ADD_TERMS = """
INSERT INTO retrieval_term AS held (knowledge_base_id, lexeme, chunks)
SELECT %s, fresh.lexeme, fresh.chunks FROM unnest(%s::text[], %s::integer[]) AS fresh (lexeme, chunks)
ON CONFLICT (knowledge_base_id, lexeme) DO UPDATE SET chunks = held.chunks + excluded.chunks
RETURNING id, lexeme
"""
_ADD_POSTINGS = """
INSERT INTO retrieval_postingblock AS held (term_id, number, postings)
SELECT * FROM unnest(%b::bigint[], %b::integer[], %b::bytea[])
ON CONFLICT (term_id, number) DO UPDATE SET postings = held.postings || excluded.postings
"""
_ADD_CHUNKS = """
INSERT INTO retrieval_indexedchunk (chunk_id, knowledge_base_id, number, length, term_ids)
VALUES (%s, %s, %s, %s, %s::bigint[])
"""
_TAKE_CHUNKS = """
DELETE FROM retrieval_indexedchunk indexed USING retrieval_chunk chunk
WHERE chunk.id = indexed.chunk_id AND chunk.document_id = %s
RETURNING indexed.number, indexed.length, indexed.term_ids
"""
_READ_POSTINGS = """
SELECT term_id, number, postings FROM retrieval_postingblock
JOIN unnest(%s::bigint[], %s::integer[]) AS wanted (term_id, number) USING (term_id, number)
"""
_PUT_POSTINGS = """
UPDATE retrieval_postingblock block SET postings = fresh.postings
FROM unnest(%b::bigint[], %b::integer[], %b::bytea[]) AS fresh (term_id, number, postings)
WHERE block.term_id = fresh.term_id AND block.number = fresh.number
"""
_TAKE_EMPTY = """
DELETE FROM retrieval_postingblock block USING unnest(%s::bigint[], %s::integer[]) AS empty (term_id, number)
WHERE block.term_id = empty.term_id AND block.number = empty.number
"""
_TAKE_TERMS = """
UPDATE retrieval_term term SET chunks = term.chunks - lost.chunks
FROM unnest(%s::bigint[], %s::integer[]) AS lost (term_id, chunks)
WHERE term.id = lost.term_id
"""
_TAKE_STATISTICS = """
UPDATE retrieval_keywordstatistics SET chunks = chunks - %s, total_length = total_length - %s
WHERE knowledge_base_id = %s
"""


@transaction.atomic
def index_chunks(knowledge_base: KnowledgeBase, chunks: Sequence[Chunk]) -> None:
    """Let saved chunks be found by the words of their text and section. Once for each chunk.

    Until the transaction ends nobody else changes the keyword index of this knowledge base, so that two documents
    cannot wait for each other's words in turn: call it late, and embed before.
    """
    if not chunks:
        return
    occurrences = [Counter(terms(f"{chunk.section}\n{chunk.text}")) for chunk in chunks]
    length = sum(each.total() for each in occurrences)
    having = Counter(lexeme for each in occurrences for lexeme in each)
    lexemes = sorted(having)
    with connection.cursor() as cursor:
        cursor.execute(_ADD_STATISTICS, {"base": knowledge_base.pk, "chunks": len(chunks), "length": length})
        (first,) = cursor.fetchone()
        counted = [Counted(number, each) for number, each in enumerate(occurrences, start=first)]
        cursor.execute(_ADD_TERMS, [knowledge_base.pk, lexemes, [having[lexeme] for lexeme in lexemes]])
        ids = {lexeme: term_id for term_id, lexeme in cursor.fetchall()}
        blocks = {(ids[lexeme], number): packed for (lexeme, number), packed in blocks_of(counted).items()}
        _write(cursor, _ADD_POSTINGS, blocks)
        cursor.executemany(
            _ADD_CHUNKS,
            [
                (chunk.pk, knowledge_base.pk, each.number, each.length, [ids[lexeme] for lexeme in each.occurrences])
                for chunk, each in zip(chunks, counted, strict=True)
            ],
        )


@transaction.atomic
def forget_document(document_id: UUID) -> None:
    """Take a document's chunks out of the keyword index; before they are deleted, in the same transaction."""
    statistics = KeywordStatistics.objects.filter(knowledge_base__documents=document_id)
    if (held := statistics.select_for_update(of=("self",)).first()) is None:
        return
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_CHUNKS, [document_id])
        gone = cursor.fetchall()
        lost = Counter(term_id for _, _, term_ids in gone for term_id in term_ids)
        cursor.execute(_TAKE_TERMS, [list(lost), list(lost.values())])
        cursor.execute(_TAKE_STATISTICS, [len(gone), sum(length for _, length, _ in gone), held.knowledge_base_id])
        cursor.execute("DELETE FROM retrieval_term WHERE id = ANY(%s::bigint[]) AND chunks = 0", [list(lost)])
        places = defaultdict[tuple[int, int], set[int]](set)
        for number, _, term_ids in gone:
            block, place = divmod(number, CHUNKS_A_BLOCK)
            for term_id in term_ids:
                places[term_id, block].add(place)
        _take_postings(cursor, places)


def _take_postings(cursor: CursorWrapper, places: dict[tuple[int, int], set[int]]) -> None:
    """Those of words that are gone themselves went with them."""
    cursor.execute(_READ_POSTINGS, [[term_id for term_id, _ in places], [block for _, block in places]])
    left = {(term_id, block): without(packed, places[term_id, block]) for term_id, block, packed in cursor.fetchall()}
    _write(cursor, _PUT_POSTINGS, {key: packed for key, packed in left.items() if packed})
    empty = [key for key, packed in left.items() if not packed]
    cursor.execute(_TAKE_EMPTY, [[term_id for term_id, _ in empty], [block for _, block in empty]])


def _write(cursor: CursorWrapper, statement: str, blocks: dict[tuple[int, int], bytes]) -> None:
    """In one order, that of the index."""
    keys = sorted(blocks)
    columns: list[Any] = [[term_id for term_id, _ in keys], [block for _, block in keys], [blocks[key] for key in keys]]
    cursor.execute(statement, columns)
