"""Voyage AI: vectors and a reranker, by its SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import aiohttp
from django.conf import settings

from retrieval.embedders.asking import (
    Fault,
    Patience,
    Vendor,
    ask,
    fault_of_status,
    too_slow,
    unreachable,
    unreadable,
)
from retrieval.embedders.base import Vector
from retrieval.embedders.batches import Limits, embed_in_batches
from retrieval.embedders.vectors import BadVectors, embeddable, unit_vectors

T = TypeVar("T")
DIMENSION = 1024
RERANK_MODEL = "rerank-2.5"
LIMITS = Limits(texts=128, bytes=300_000)  # 120,000 tokens a request; a token is hardly ever less than three bytes
_MOST_RERANKED = 100


class Voyage:
    """One of Voyage's models. Questions and passages are told apart, as its models want it."""

    def __init__(self, *, model: str, patience: Patience | None = None) -> None:
        self._model = model
        self._patience = patience or Patience()

    @property
    def name(self) -> str:
        return f"voyage/{self._model}/{DIMENSION}"

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, text: str) -> Vector:
        async def one(texts: list[str]) -> list[Vector]:
            return await self._embed(texts, "query", is_awaited=True)

        return (await embed_in_batches([text], one, limits=LIMITS, dimension=DIMENSION))[0]

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        async def batch(texts: list[str]) -> list[Vector]:
            return await self._embed(texts, "document", is_awaited=False)

        return await embed_in_batches(texts, batch, limits=LIMITS, dimension=DIMENSION)

    async def aclose(self) -> None:
        pass

    async def _embed(self, texts: list[str], input_type: str, *, is_awaited: bool) -> list[Vector]:
        vendor = _vendor()
        client = _client(self._patience)

        async def request() -> list[Vector]:
            said = await _answered(
                vendor,
                self._patience,
                lambda: client.embed(
                    texts, model=self._model, input_type=input_type, truncation=True, output_dimension=DIMENSION
                ),
            )
            try:
                return unit_vectors(said.embeddings, count=len(texts), dimension=DIMENSION)
            except BadVectors as error:
                raise unreadable(vendor, str(error)) from error

        return await ask(vendor, request, self._patience, is_awaited=is_awaited)


async def rerank(query: str, texts: Sequence[str], *, patience: Patience | None = None) -> list[float]:
    """How well each of at most 100 texts answers the query, 0 to 1, in their order. Raises EmbedderFailed."""
    if not query.strip() or not texts:
        return [0.0] * len(texts)
    if len(texts) > _MOST_RERANKED:
        raise ValueError(f"{len(texts)} texts to rerank; {_MOST_RERANKED} is the most")
    vendor, patience = _vendor(), patience or Patience()
    client = _client(patience)
    documents = [embeddable(text) or " " for text in texts]

    async def request() -> list[float]:
        said = await _answered(
            vendor, patience, lambda: client.rerank(embeddable(query), documents, model=RERANK_MODEL, truncation=True)
        )
        scores = {result.index: float(result.relevance_score) for result in said.results}
        if set(scores) != set(range(len(texts))):
            raise unreadable(vendor, f"scored {len(scores)} of {len(texts)} passages")
        return [scores[index] for index in range(len(texts))]

    return await ask(vendor, request, patience, is_awaited=True)


def import_sdk() -> Any:
    """The SDK takes a second or two to import, so only who uses it does, and a server before its first question."""
    import voyageai

    return voyageai


def _vendor() -> Vendor:
    return Vendor("Voyage AI", "VOYAGE_BASE_URL", "VOYAGE_API_KEY", settings.VOYAGE_API_KEY)


def _client(patience: Patience) -> Any:
    """Retries are ours: the SDK's leave out lost connections and plain server errors."""
    return import_sdk().AsyncClient(
        api_key=settings.VOYAGE_API_KEY,
        base_url=settings.VOYAGE_BASE_URL or None,
        timeout=patience.timeout_seconds,
        max_retries=1,
    )


async def _answered(vendor: Vendor, patience: Patience, call: Callable[[], Awaitable[T]]) -> T:
    """One call of the SDK, its many errors turned into a Fault."""
    errors = import_sdk().error
    try:
        return await call()
    except errors.Timeout as error:
        raise too_slow(vendor, patience) from error
    except (errors.APIConnectionError, aiohttp.ClientError, OSError) as error:
        raise unreachable(vendor) from error
    except errors.VoyageError as error:
        raise _fault_of(vendor, error) from error
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:  # the answer was of another form
        raise unreadable(vendor) from error


def _fault_of(vendor: Vendor, error: Any) -> Fault:
    status = error.http_status or 0
    if status < 400:
        return unreadable(vendor)
    return fault_of_status(vendor, status, str(error.user_message or ""))
