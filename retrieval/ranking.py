"""Finding passages by both legs, and fusing what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.analysis import terms
from retrieval.fusion import FUSIONS, Seen
from retrieval.keyword_leg import POSTINGS_BUDGET, KeywordScores, postings_of
from retrieval.passages import Found, Passage, Ranks, Scores
from retrieval.query_vectors import query_vectors
from retrieval.scope import Scope, scope_of
from retrieval.vector_leg import Near, VectorLeg, nearest, nearness

DEPTH = 100  # how far down a leg is ranked
MOST_FUSED = 2 * DEPTH

# For these statements alone. Compiling them costs more than running them, and so does sharing them out among processes.
# One plan serves all scopes, and may not take what is in one knowledge base for all there is.
_SETTINGS = """
SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('work_mem', '32MB', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true),
    set_config('hnsw.ef_search', '100', true), set_config('hnsw.iterative_scan', 'strict_order', true)
"""

_PASSAGES = """
SELECT document.id, document.external_id, document.title, chunk.section, chunk.text, chunk.start, chunk."end",
    chunk.page, base.slug, wanted.place
FROM unnest(%(chunks)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
CROSS JOIN LATERAL (SELECT * FROM retrieval_chunk WHERE id = wanted.id OFFSET 0) chunk
CROSS JOIN LATERAL (SELECT * FROM retrieval_document WHERE id = chunk.document_id OFFSET 0) document
JOIN retrieval_knowledgebase base ON base.id = chunk.knowledge_base_id
WHERE base.id = ANY(%(scope)s::uuid[])
ORDER BY wanted.place"""

Statement = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for in a scope: words, those added to them, and the query's vectors."""

    lexemes: frozenset[str]
    added: frozenset[str] = frozenset()
    legs: tuple[VectorLeg, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fused:
    """A chunk, what the legs said of it and what that comes to."""

    chunk_id: int
    seen: Seen
    score: float


async def rank(person: Person | None, query: str, *, knowledge_base: str, most: int, more_words: str = "") -> Found:
    """Up to `most` passages, best first by the fusion of both legs; a leg that is missing is said.

    Raises NoSuchKnowledgeBase.
    """
    scope = await in_database(scope_of, person, knowledge_base)
    if not scope.parts or not any(letter.isprintable() and not letter.isspace() for letter in query):
        return Found(())
    vectors = await query_vectors(query, [part.embedder for part in scope.parts])
    legs = tuple(
        VectorLeg(part.embedder, made.vector, part.ids, part.is_compared)
        for part in scope.parts
        if (made := vectors[part.embedder]).vector is not None
    )
    lexemes = frozenset(terms(query))
    wanted = Wanted(lexemes, frozenset(terms(more_words)) - lexemes, legs)
    passages = await in_database(passages_in, scope, wanted, most=most)
    return Found(passages, tuple(made.missing for made in vectors.values() if made.missing))


@transaction.atomic
def passages_in(scope: Scope, wanted: Wanted, *, most: int, budget: int = POSTINGS_BUDGET) -> tuple[Passage, ...]:
    """The best passages of a scope, in three round trips: what the legs find, how near the rest is, and the text."""
    asked = [(_SETTINGS, {}), postings_of(scope.ids, wanted.lexemes | wanted.added, budget=budget)]
    if wanted.legs:
        asked.append(nearest(wanted.legs, depth=DEPTH))
    _, postings, *found = _rows(*asked)
    keywords = KeywordScores.of(postings, added=wanted.added, chunks=scope.chunks, total_length=scope.total_length)
    near = [Near.of(row) for rows in found for row in rows]
    best = keywords.best(DEPTH)
    left = set(best).difference(keywords.at(each.place) for each in near)
    (rest,) = _rows(nearness(wanted.legs, [keywords.place(at) for at in left]))
    fused = _fused(near, [Near.of(row) for row in rest], best, keywords)[:most]
    (texts,) = _rows((_PASSAGES, {"chunks": [each.chunk_id for each in fused], "scope": list(scope.ids)}))
    return tuple(_passage(row, fused[place - 1], rank=rank) for rank, (*row, place) in enumerate(texts, start=1))


def _fused(near: Sequence[Near], rest: Sequence[Near], best: Sequence[int], keywords: KeywordScores) -> list[_Fused]:
    """What either leg found, best first. `near` has the order of its leg, `rest` is what only the words found."""
    fusion = FUSIONS[settings.SEARCH_FUSION]
    by_keyword: dict[int | None, int] = {at: rank for rank, at in enumerate(best, start=1)}
    best_score = keywords.score(best[0]) if best else 0.0
    fused = []
    for rank, each in enumerate((*near, *rest), start=1):
        at = keywords.at(each.place)
        vector_rank = rank if rank <= len(near) else None
        seen = Seen(by_keyword.get(at), vector_rank, keywords.score(at), each.cosine)
        fused.append(_Fused(each.chunk_id, seen, fusion.score(seen, best_keyword_score=best_score)))
    return sorted(fused, key=lambda each: (-each.score, each.chunk_id))


def _rows(*statements: Statement) -> list[list[Any]]:
    """What each statement says, all in one round trip. Bytes come as they are, where text would be twice as long."""
    raw = connection.connection
    with connection.wrap_database_errors, raw.pipeline():
        cursors = [raw.cursor(binary=True).execute(*each) for each in statements]
        return [cursor.fetchall() for cursor in cursors]


def _passage(row: Sequence[Any], fused: _Fused, *, rank: int) -> Passage:
    document_id, external_id, title, section, text, start, end, page, slug = row
    seen = fused.seen
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
        ranks=Ranks(keyword=seen.keyword_rank, vector=seen.vector_rank, fused=rank),
        scores=Scores(keyword=seen.keyword_score, vector=seen.cosine, fused=fused.score),
    )
