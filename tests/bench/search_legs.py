"""Each leg of a search alone, and exact BM25 to compare with, for bench_search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from django.db import connection, transaction

from klerai.database import in_database
from retrieval.analysis import terms
from retrieval.embedders.choosing import embedder_named
from retrieval.fusion import CONVEX
from retrieval.ranking import SETTINGS
from retrieval.scope import scope_of
from retrieval.statement import POSTINGS_BUDGET, VectorLeg, statement

Work = Callable[[str], Awaitable[object]]


async def keyword_leg(slug: str) -> Work:
    scope = await in_database(scope_of, None, slug)

    async def work(query: str) -> object:
        return await in_database(_by_keyword, scope.ids, query, POSTINGS_BUDGET)

    return work


async def vector_leg(slug: str) -> Work:
    scope = await in_database(scope_of, None, slug)
    (part,) = scope.parts
    embedder = embedder_named(part.embedder)
    assert embedder is not None

    async def work(query: str) -> object:
        leg = VectorLeg(part.embedder, await embedder.embed(query), part.ids, part.is_compared)
        return await in_database(_rows, *statement(part.ids, set(), [leg], fusion=CONVEX, shown=20))

    return work


async def same_as_exact(slug: str, queries: Sequence[str], *, top: int) -> float:
    """Which part of the first `top` by all postings the two phases find."""
    scope = await in_database(scope_of, None, slug)
    found = exact = 0
    for query in queries:
        fast = await in_database(_by_keyword, scope.ids, query, POSTINGS_BUDGET)
        slow = await in_database(_by_keyword, scope.ids, query, 10**12)
        exact += len(slow[:top])
        found += len({row[0] for row in fast[:top]} & {row[0] for row in slow[:top]})
    return found / exact


def _by_keyword(scope: Sequence[Any], query: str, budget: int) -> list[Any]:
    return _rows(*statement(scope, set(terms(query)), [], fusion=CONVEX, shown=20, budget=budget))


def _rows(text: str, parameters: dict[str, Any]) -> list[Any]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        cursor.execute(text, parameters)
        return list(cursor.fetchall())
