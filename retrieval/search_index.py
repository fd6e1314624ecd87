"""Indexes in memory, for the few hundred passages that one question fetches and then forgets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from retrieval.analysis import terms
from retrieval.embedders.base import Embedder
from retrieval.fusion import RECIPROCAL_RANK, Fusion, Seen


@dataclass(frozen=True, slots=True)
class Hit:
    """The text at `position` of those that were indexed; the higher the score, the better."""

    position: int
    score: float
    seen: Seen | None = field(default=None, compare=False)  # by the legs, where there are some


class SearchIndex(Protocol):
    """Texts that can be searched, best first; equal ones in the order they were given."""

    async def search(self, query: str, *, limit: int) -> list[Hit]: ...


class Metric(StrEnum):
    """How far apart two vectors are."""

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"


class KeywordIndex:
    """BM25 over the same terms as in the database. Texts without a word of the query are no hits."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> None:
        self._corpus: Sequence[Sequence[str]] = [terms(text) for text in texts]
        self._k1, self._b = k1, b

    @classmethod
    def of_terms(cls, corpus: Sequence[Sequence[str]], *, k1: float = 1.5, b: float = 0.75) -> Self:
        """Over texts whose terms are known already, which is most of the work."""
        index = cls((), k1=k1, b=b)
        index._corpus = corpus
        return index

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        wanted = list(dict.fromkeys(terms(query)))
        bm25 = _bm25(self._corpus, wanted, k1=self._k1, b=self._b)
        if bm25 is None:
            return []
        scores = np.asarray(bm25.get_scores(wanted))
        return [hit for hit in _best(scores, limit) if hit.score > 0]


class VectorIndex:
    """The texts nearest to a query by an embedder. Raises EmbedderFailed."""

    def __init__(self, vectors: NDArray[np.float32], embedder: Embedder, *, metric: Metric = Metric.COSINE) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._metric = metric

    @classmethod
    async def of(cls, texts: Sequence[str], embedder: Embedder, *, metric: Metric = Metric.COSINE) -> Self:
        vectors = np.array(await embedder.batch_embed(texts), dtype=np.float32)
        return cls(vectors.reshape(len(texts), embedder.dimension), embedder, metric=metric)

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        """Scores are cosines, or distances with their sign turned."""
        vector = await self._embedder.embed(query)
        match self._metric:
            case Metric.COSINE:
                lengths = np.linalg.norm(self._vectors, axis=1) * np.linalg.norm(vector)
                scores = self._vectors @ vector / np.maximum(lengths, np.finfo(np.float32).tiny)
            case Metric.EUCLIDEAN:
                scores = -np.linalg.norm(self._vectors - vector, axis=1)
        return _best(scores, limit)


class HybridIndex:
    """A keyword index and a vector index over the same texts, fused."""

    def __init__(
        self, keyword: SearchIndex, vector: SearchIndex, *, fusion: Fusion = RECIPROCAL_RANK, depth: int = 100
    ) -> None:
        self._keyword = keyword
        self._vector = vector
        self._fusion = fusion
        self._depth = depth

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        by_keyword = await self._keyword.search(query, limit=self._depth)
        by_vector = await self._vector.search(query, limit=self._depth)
        keyword = {hit.position: (rank, hit.score) for rank, hit in enumerate(by_keyword, 1)}
        vector = {hit.position: (rank, hit.score) for rank, hit in enumerate(by_vector, 1)}
        best = by_keyword[0].score if by_keyword else 0.0
        hits = []
        for position in keyword | vector:
            keyword_rank, keyword_score = keyword.get(position, (None, None))
            vector_rank, cosine = vector.get(position, (None, None))
            seen = Seen(keyword_rank, vector_rank, keyword_score, cosine)
            hits.append(Hit(position, self._fusion.score(seen, best_keyword_score=best), seen))
        return sorted(hits, key=lambda hit: (-hit.score, hit.position))[:limit]


def _best(scores: NDArray[Any], limit: int) -> list[Hit]:
    order = np.argsort(-scores, kind="stable")[:limit]
    return [Hit(int(position), float(scores[position])) for position in order]


def _bm25(corpus: Sequence[Sequence[str]], wanted: Sequence[str], *, k1: float, b: float) -> Any:
    """The package's index of the wanted terms alone, which is all that a question asks of it; None if none occurs."""
    from rank_bm25 import BM25Okapi

    asked = set(wanted)
    kept = [[term for term in text if term in asked] for text in corpus]
    having = Counter(term for text in kept for term in set(text))
    if not having:
        return None
    index = BM25Okapi(kept, k1=k1, b=b)
    index.doc_len = [len(text) for text in corpus]
    index.avgdl = sum(index.doc_len) / len(corpus)
    # The package's own weight of a term in more than half of the texts is negative.
    index.idf = {term: math.log1p((len(corpus) - count + 0.5) / (count + 0.5)) for term, count in having.items()}
    return index
