"""The one statement of a search: BM25 in two phases, the nearest windows and the fusion of both."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from retrieval.embedders.base import Vector
from retrieval.fusion import Fusion

DEPTH = 100  # how far down a leg is ranked
MOST_FUSED = 2 * DEPTH
POSTINGS_BUDGET = 20_000
RESCORED = 400
MOST_WORDS = 64
ADDED_WEIGHT = 0.5  # of a word that the query does not have

# Rare words first: as many as the budget of postings allows, and one at least. Words are counted over the whole scope,
# and over nothing outside it.
_WORDS = """
size AS MATERIALIZED (
    SELECT sum(chunks)::float8 AS chunks,
        %(k1)s::float8 * %(b)s::float8 * sum(chunks) / greatest(sum(total_length), 1)::float8 AS slope
    FROM retrieval_keywordstatistics WHERE knowledge_base_id = ANY(%(scope)s::uuid[])
), entry AS MATERIALIZED (
    SELECT id, lexeme, chunks FROM retrieval_term
    WHERE knowledge_base_id = ANY(%(scope)s::uuid[]) AND lexeme = ANY(%(lexemes)s::text[])
), word AS MATERIALIZED (
    SELECT lexeme, counted.chunks,
        (%(k1)s::float8 + 1) * CASE WHEN lexeme = ANY(%(added)s::text[]) THEN %(added_weight)s::float8 ELSE 1 END
            * ln(1 + (size.chunks - counted.chunks + 0.5) / (counted.chunks + 0.5)) AS weight,
        sum(counted.chunks) OVER rarest <= %(budget)s OR row_number() OVER rarest = 1 AS is_rare
    FROM (SELECT lexeme, sum(chunks)::float8 AS chunks FROM entry GROUP BY lexeme) counted CROSS JOIN size
    WINDOW rarest AS (ORDER BY counted.chunks, lexeme)
    ORDER BY counted.chunks, lexeme LIMIT %(most_words)s
), term AS MATERIALIZED (
    SELECT entry.id, word.weight, word.is_rare FROM entry JOIN word USING (lexeme)
)"""

_WEIGHT = """term.weight * posting.occurrences
        / (posting.occurrences + %(k1)s::float8 * (1 - %(b)s::float8) + size.slope * posting.length)"""

# The best by rare words, scored by the frequent ones too; and what only the vectors found, scored by all. Here
# and below, OFFSET 0 has rows looked up by the key beside it, whatever the planner knows of the knowledge base.
_KEYWORD = f"""
rough AS MATERIALIZED (
    SELECT posting.chunk_id, sum({_WEIGHT}) AS score
    FROM term CROSS JOIN size CROSS JOIN LATERAL (
        SELECT chunk_id, occurrences, length FROM retrieval_posting WHERE term_id = term.id OFFSET 0
    ) posting
    WHERE term.is_rare GROUP BY posting.chunk_id ORDER BY score DESC LIMIT %(rescored)s
), candidate AS MATERIALIZED (
    SELECT chunk_id, score, true AS is_rough FROM rough
    UNION ALL
    SELECT chunk_id, 0, false FROM near WHERE chunk_id NOT IN (SELECT chunk_id FROM rough)
), scored AS MATERIALIZED (
    SELECT candidate.chunk_id, candidate.score + coalesce((
        SELECT sum({_WEIGHT})
        FROM term CROSS JOIN size CROSS JOIN LATERAL (
            SELECT occurrences, length FROM retrieval_posting
            WHERE term_id = term.id AND chunk_id = candidate.chunk_id OFFSET 0
        ) posting
        WHERE NOT (candidate.is_rough AND term.is_rare)
    ), 0) AS score FROM candidate
), keyword AS MATERIALIZED (
    SELECT chunk_id, score, row_number() OVER (ORDER BY score DESC, chunk_id) AS rank
    FROM scored WHERE score > 0 ORDER BY rank LIMIT %(depth)s
)"""

# A chunk is as near as its nearest window. Grouping all windows takes three times as long as sorting out the first.
_COMPARED = """
    SELECT chunk_id, max(cosine) AS cosine FROM (
        SELECT chunk_id, -(vector <#> %(vector_{leg})s::vector) AS cosine
        FROM unnest(%(scope_{leg})s::uuid[]) AS base (id) CROSS JOIN LATERAL (
            SELECT chunk_id, vector FROM retrieval_window
            WHERE knowledge_base_id = base.id AND embedder = {embedder} OFFSET 0
        ) own
        ORDER BY cosine DESC, chunk_id LIMIT 4 * %(depth)s
    ) nearest GROUP BY chunk_id ORDER BY cosine DESC, chunk_id LIMIT %(depth)s"""

_APPROXIMATE = """
    SELECT chunk_id, max(cosine) AS cosine FROM (
        SELECT chunk_id, -(vector <#> %(vector_{leg})s::vector) AS cosine FROM retrieval_window
        WHERE knowledge_base_id = ANY(%(scope_{leg})s::uuid[]) AND embedder = {embedder}
        ORDER BY vector::halfvec({dimension}) <#> %(vector_{leg})s::halfvec({dimension}) LIMIT %(depth)s
    ) nearest GROUP BY chunk_id"""

_OF_ONE_CHUNK = """
            SELECT -(vector <#> %(vector_{leg})s::vector) AS cosine
            FROM (SELECT * FROM retrieval_window WHERE chunk_id = keyword.chunk_id OFFSET 0) own
            WHERE embedder = {embedder} AND knowledge_base_id = ANY(%(scope_{leg})s::uuid[])"""

_NEAR = """
near AS MATERIALIZED (
    SELECT chunk_id, cosine, row_number() OVER (ORDER BY cosine DESC, chunk_id) AS rank
    FROM ({legs}) leg
)"""

_FUSED = """
pool AS MATERIALIZED (
    SELECT chunk_id, keyword.rank AS keyword_rank, near.rank AS vector_rank,
        coalesce(keyword.score, scored.score) AS keyword_score,
        coalesce(near.cosine, (SELECT max(cosine) FROM ({of_one_chunk}) own)) AS cosine,
        (SELECT max(score) FROM keyword) AS best_keyword_score
    FROM keyword FULL JOIN near USING (chunk_id) LEFT JOIN scored USING (chunk_id)
), fused AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY score DESC, chunk_id) AS rank
    FROM (SELECT *, {fusion} AS score FROM pool) counted ORDER BY rank LIMIT %(shown)s
)
SELECT document.id, document.external_id, document.title, chunk.section, chunk.text, chunk.start, chunk."end",
    chunk.page, base.slug, fused.keyword_rank, fused.vector_rank, fused.rank,
    fused.keyword_score, fused.cosine, fused.score
FROM fused
CROSS JOIN LATERAL (SELECT * FROM retrieval_chunk WHERE id = fused.chunk_id OFFSET 0) chunk
CROSS JOIN LATERAL (SELECT * FROM retrieval_document WHERE id = chunk.document_id OFFSET 0) document
JOIN retrieval_knowledgebase base ON base.id = chunk.knowledge_base_id
WHERE base.id = ANY(%(scope)s::uuid[])
ORDER BY fused.rank"""

_NOWHERE = "SELECT NULL::bigint AS chunk_id, NULL::float8 AS cosine WHERE false"


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Where the windows of one embedder are searched for those nearest to the query's vector."""

    embedder: str
    vector: Vector
    scope: Sequence[UUID]
    is_compared: bool


def statement(
    scope: Sequence[UUID],
    lexemes: Set[str],
    legs: Sequence[VectorLeg],
    *,
    added: Set[str] = frozenset(),
    fusion: Fusion,
    shown: int,
    budget: int = POSTINGS_BUDGET,
) -> tuple[str, dict[str, Any]]:
    """The text and the parameters of a search in the knowledge bases `scope`; rows come best first.

    `added` are lexemes that the query does not have itself.
    """
    parameters: dict[str, Any] = {
        "scope": list(scope),
        "lexemes": sorted(lexemes | added),
        "added": sorted(added - lexemes),
        "added_weight": ADDED_WEIGHT,
        "k1": settings.BM25_K1,
        "b": settings.BM25_B,
        "budget": budget,
        "rescored": RESCORED,
        "most_words": MOST_WORDS,
        "depth": DEPTH,
        "shown": shown,
    }
    found, own = [], []
    for number, leg in enumerate(legs):
        parameters[f"vector_{number}"] = "[" + ",".join(map(str, leg.vector.tolist())) + "]"
        parameters[f"scope_{number}"] = list(leg.scope)
        names = {"leg": number, "embedder": _quoted(leg.embedder), "dimension": len(leg.vector)}
        found.append(f"({(_COMPARED if leg.is_compared else _APPROXIMATE).format(**names)})")
        own.append(_OF_ONE_CHUNK.format(**names))
    near = _NEAR.format(legs=" UNION ALL ".join(found) or _NOWHERE)
    of_one_chunk = " UNION ALL ".join(own) or _NOWHERE
    fused = _FUSED.format(of_one_chunk=of_one_chunk, fusion=fusion.sql)
    return f"WITH {_WORDS}, {near}, {_KEYWORD}, {fused}", parameters


def _quoted(name: str) -> str:
    """A literal: the index holds windows `WHERE embedder = '…'`, which no parameter is seen to match."""
    return "'" + name.replace("'", "''").replace("%", "%%") + "'"
