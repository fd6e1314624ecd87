"""Finding passages by both legs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.analysis import terms
from retrieval.fusion import FUSIONS
from retrieval.passages import Found, Passage, Ranks, Scores
from retrieval.query_vectors import query_vectors
from retrieval.scope import Scope, scope_of
from retrieval.statement import VectorLeg, statement

# For this statement alone. Compiling it costs more than running it, and so does sharing it out among processes. One
# plan serves all scopes, and may not take what is in one knowledge base for all there is.
SETTINGS = """
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('work_mem', '32MB', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true),
    set_config('hnsw.ef_search', '100', true), set_config('hnsw.iterative_scan', 'strict_order', true)
"""


async def rank(person: Person | None, query: str, *, knowledge_base: str, most: int, more_words: str = "") -> Found:
    """Up to `most` passages, best first by the fusion of both legs; a leg that is missing is said.

    Raises NoSuchKnowledgeBase.
    """
    scope = await in_database(scope_of, person, knowledge_base)
    if not scope.parts or not any(letter.isprintable() and not letter.isspace() for letter in query):
        return Found(())
    vectors = await query_vectors(query, [part.embedder for part in scope.parts])
    legs = [
        VectorLeg(part.embedder, made.vector, part.ids, part.is_compared)
        for part in scope.parts
        if (made := vectors[part.embedder]).vector is not None
    ]
    passages = await in_database(_passages, scope, query, more_words, legs, most)
    return Found(passages, tuple(made.missing for made in vectors.values() if made.missing))


def _passages(scope: Scope, query: str, more_words: str, legs: Sequence[VectorLeg], most: int) -> tuple[Passage, ...]:
    fusion = FUSIONS[settings.SEARCH_FUSION]
    lexemes, added = frozenset(terms(query)), frozenset(terms(more_words))
    text, parameters = statement(scope.ids, lexemes, legs, added=added, fusion=fusion, shown=most)
    with connection.cursor() as cursor:
        with connection.connection.pipeline(), transaction.atomic():
            cursor.execute(SETTINGS)
            cursor.execute(text, parameters)
        rows = cursor.fetchall()
    return tuple(_passage(row) for row in rows)


def _passage(row: tuple[Any, ...]) -> Passage:
    document_id, external_id, title, section, text, start, end, page, slug, *stages = row
    keyword_rank, vector_rank, fused_rank, keyword_score, cosine, fused_score = stages
    return Passage(
        document_id=document_id,
        external_id=external_id,
        title=title,
        section=section,
        text=text,
        start=start,
        end=end,
        page=page,
        knowledge_base=slug,
        ranks=Ranks(keyword=keyword_rank, vector=vector_rank, fused=fused_rank),
        scores=Scores(keyword=keyword_score, vector=cosine, fused=fused_score),
    )
