"""Searching what a person knows: one way for the chat's tools, the API, the pages and the commands."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace

from klerai.accounts.models import Person
from retrieval.models import DEFAULT_SLUG
from retrieval.passages import Found, Passage
from retrieval.ranking import rank
from retrieval.rerank import Reranker

logger = logging.getLogger(__name__)

CANDIDATES = 20
MOST = 100
RERANK_SECONDS = 10.0
_RERANK_QUERY_CHARACTERS = 4_000


async def search(
    person: Person | None,
    query: str,
    *,
    knowledge_base: str = DEFAULT_SLUG,
    limit: int = 5,
    rerank: Reranker | None = None,
    more_words: str = "",
) -> Found:
    """The best `limit` passages (1 to 100) of what the person may read under a slug; without a person what is shared.

    The first twenty by fusion go through `rerank`. `more_words` widen the search by keyword. What fails on the way
    costs its stage and is said in `degraded`; any text is a fine query. Raises NoSuchKnowledgeBase.
    """
    limit = min(max(limit, 1), MOST)
    candidates = max(CANDIDATES, limit) if rerank is not None else limit
    found = await rank(person, query, knowledge_base=knowledge_base, most=candidates, more_words=more_words)
    if rerank is not None and found.passages:
        found = await _reranked(found, query, rerank)
    return replace(found, passages=found.passages[:limit])


async def _reranked(found: Found, query: str, rerank: Reranker) -> Found:
    asked = query.replace("\0", " ")[:_RERANK_QUERY_CHARACTERS]
    try:
        async with asyncio.timeout(RERANK_SECONDS):
            scores = await rerank(asked, [passage.text for passage in found.passages])
        if len(scores) != len(found.passages) or not all(map(math.isfinite, scores)):
            raise ValueError("not one score for each passage")
    except Exception as error:  # of a stage that search does without
        logger.warning("Passages could not be reranked: %s", error or type(error).__name__)
        sentence = "Reranking failed, so passages stand in the order of the first search."
        return replace(found, degraded=(*found.degraded, sentence))
    order = sorted(zip(scores, found.passages, strict=True), key=lambda pair: -pair[0])
    return replace(found, passages=tuple(_at(place, score, passage) for place, (score, passage) in enumerate(order, 1)))


def _at(place: int, score: float, passage: Passage) -> Passage:
    return replace(
        passage, ranks=replace(passage.ranks, reranked=place), scores=replace(passage.scores, reranked=score)
    )
