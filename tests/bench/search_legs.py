"""Each leg of a search alone, and exact BM25 to compare with, for bench_search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from klerai.database import in_database
from retrieval.analysis import terms
from retrieval.embedders.choosing import embedder_named
from retrieval.passages import Passage
from retrieval.ranking import Wanted, passages_in
from retrieval.scope import Scope, scope_of
from retrieval.vector_leg import VectorLeg

SHOWN = 20
Work = Callable[[str], Awaitable[object]]


async def keyword_leg(slug: str) -> Work:
    scope = await in_database(scope_of, None, slug)

    async def work(query: str) -> object:
        return await in_database(passages_in, scope, Wanted(frozenset(terms(query))), most=SHOWN)

    return work


async def vector_leg(slug: str) -> Work:
    scope = await in_database(scope_of, None, slug)
    (part,) = scope.parts
    embedder = embedder_named(part.embedder)
    assert embedder is not None

    async def work(query: str) -> object:
        leg = VectorLeg(part.embedder, await embedder.embed(query), part.ids, part.is_compared)
        return await in_database(passages_in, scope, Wanted(frozenset(), legs=(leg,)), most=SHOWN)

    return work


async def same_as_exact(slug: str, queries: Sequence[str], *, top: int) -> float:
    """Which part of the first `top` by all postings the budget leaves."""
    scope = await in_database(scope_of, None, slug)
    found = exact = 0
    for query in queries:
        fast = await in_database(_by_keyword, scope, query)
        slow = await in_database(_by_keyword, scope, query, budget=10**12)
        exact += len(slow[:top])
        found += len({_key(each) for each in fast[:top]} & {_key(each) for each in slow[:top]})
    return found / exact


def _by_keyword(scope: Scope, query: str, **budget: int) -> tuple[Passage, ...]:
    return passages_in(scope, Wanted(frozenset(terms(query))), most=SHOWN, **budget)


def _key(passage: Passage) -> tuple[object, int]:
    return passage.document_id, passage.start
