"""The vectors of a question, one by each embedder asked, as far as they answer in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.embedders.base import Vector
from retrieval.embedders.choosing import embedder_named
from retrieval.errors import EmbedderFailed

PATIENCE_SECONDS = 4.0
_BY_KEYWORD = "passages were found by keyword only"


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector, or the sentence that says why there is none."""

    vector: Vector | None
    missing: str = ""


async def query_vectors(query: str, embedders: Sequence[str]) -> dict[str, QueryVector]:
    """By the embedders' names, all asked at once. Never raises for an embedder's failure."""
    made = await asyncio.gather(*(_query_vector(query, name) for name in embedders))
    return dict(zip(embedders, made, strict=True))


async def _query_vector(query: str, name: str) -> QueryVector:
    if not name:
        return QueryVector(None, f"There is no embedder, so {_BY_KEYWORD}.")
    embedder = embedder_named(name)
    if embedder is None:
        return QueryVector(None, f"The embedder {name} is not set up here, so {_BY_KEYWORD}.")
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return QueryVector(await embedder.embed(query))
    except TimeoutError:
        return QueryVector(None, f"The embedder {name} did not answer in time, so {_BY_KEYWORD}.")
    except EmbedderFailed as error:
        return QueryVector(None, f"{error} So {_BY_KEYWORD}.")
    finally:
        await embedder.aclose()
