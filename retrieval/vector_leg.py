"""The windows nearest to a query, and how near given chunks are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from retrieval.embedders.base import Vector
from retrieval.keyword_leg import Place

# A chunk is as near as its nearest window. Grouping all windows takes three times as long as sorting out the first.
# OFFSET 0 has rows looked up by the key beside it, whatever the planner knows of the knowledge base.
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

_NEAREST = """
SELECT near.chunk_id, near.cosine, indexed.knowledge_base_id, indexed.number
FROM ({legs}) near CROSS JOIN LATERAL (
    SELECT knowledge_base_id, number FROM retrieval_indexedchunk WHERE chunk_id = near.chunk_id OFFSET 0
) indexed
ORDER BY near.cosine DESC, near.chunk_id"""

_OF_ONE_CHUNK = """
        SELECT -(vector <#> %(vector_{leg})s::vector) AS cosine
        FROM (SELECT * FROM retrieval_window WHERE chunk_id = indexed.chunk_id OFFSET 0) own
        WHERE embedder = {embedder} AND knowledge_base_id = ANY(%(scope_{leg})s::uuid[])"""

_OF_CHUNKS = """
SELECT indexed.chunk_id, (SELECT max(cosine) FROM ({legs}) own), place.base, place.number
FROM unnest(%(bases)s::uuid[], %(numbers)s::integer[]) AS place (base, number) CROSS JOIN LATERAL (
    SELECT chunk_id FROM retrieval_indexedchunk
    WHERE knowledge_base_id = place.base AND number = place.number OFFSET 0
) indexed"""

_NONE = "SELECT NULL::float8 AS cosine WHERE false"


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Where the windows of one embedder are searched for those nearest to the query's vector."""

    embedder: str
    vector: Vector
    scope: Sequence[UUID]
    is_compared: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A chunk and the cosine of its nearest window, None where it has no vector."""

    chunk_id: int
    cosine: float | None
    place: Place

    @classmethod
    def of(cls, row: tuple[int, float | None, UUID, int]) -> Near:
        chunk_id, cosine, base, number = row
        return cls(chunk_id, cosine, Place(base, number))


def nearest(legs: Sequence[VectorLeg], *, depth: int) -> tuple[str, dict[str, Any]]:
    """The statement that finds up to `depth` chunks a leg, nearest first, as rows of `Near`; one leg at least."""
    found = (f"({_filled(_COMPARED if leg.is_compared else _APPROXIMATE, at, leg)})" for at, leg in enumerate(legs))
    return _NEAREST.format(legs=" UNION ALL ".join(found)), {**_parameters(legs), "depth": depth}


def nearness(legs: Sequence[VectorLeg], places: Sequence[Place]) -> tuple[str, dict[str, Any]]:
    """The statement that says how near these chunks are, as rows of `Near` in any order."""
    own = " UNION ALL ".join(_filled(_OF_ONE_CHUNK, at, leg) for at, leg in enumerate(legs))
    asked = {"bases": [place.knowledge_base for place in places], "numbers": [place.number for place in places]}
    return _OF_CHUNKS.format(legs=own or _NONE), {**_parameters(legs), **asked}


def _filled(text: str, number: int, leg: VectorLeg) -> str:
    return text.format(leg=number, embedder=_quoted(leg.embedder), dimension=len(leg.vector))


def _parameters(legs: Sequence[VectorLeg]) -> dict[str, Any]:
    vectors = {f"vector_{at}": "[" + ",".join(map(str, leg.vector.tolist())) + "]" for at, leg in enumerate(legs)}
    return {**vectors, **{f"scope_{at}": list(leg.scope) for at, leg in enumerate(legs)}}


def _quoted(name: str) -> str:
    """A literal: the index holds windows `WHERE embedder = '…'`, which no parameter is seen to match."""
    return "'" + name.replace("'", "''").replace("%", "%%") + "'"
