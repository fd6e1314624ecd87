"""How the scores of two legs become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """What the legs said of a passage: ranks from 1, BM25, cosine; None where a leg did not see it."""

    keyword_rank: int | None = None
    vector_rank: int | None = None
    keyword_score: float | None = None
    cosine: float | None = None


class Fusion(Protocol):
    """A formula. `best_keyword_score` is that of the whole query."""

    def score(self, seen: Seen, *, best_keyword_score: float) -> float: ...


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """The sum of 1 / (k + rank): takes no notice of how much better a passage is than the next."""

    k: int = 60

    def score(self, seen: Seen, *, best_keyword_score: float) -> float:
        return sum(1.0 / (self.k + rank) for rank in (seen.keyword_rank, seen.vector_rank) if rank is not None)


@dataclass(frozen=True, slots=True)
class ConvexCombination:
    """The weighted mean of both scores, each divided by its theoretical range: BM25 by the query's best, cosine
    shifted by one. Never far below the better leg (Bruch, Gai and Ingber, arXiv 2210.11934).
    """

    keyword_weight: float = 0.5

    def score(self, seen: Seen, *, best_keyword_score: float) -> float:
        keyword = (seen.keyword_score or 0) / best_keyword_score if best_keyword_score else 0.0
        nearness = 0.0 if seen.cosine is None else (seen.cosine + 1) / 2
        return self.keyword_weight * keyword + (1 - self.keyword_weight) * nearness


RECIPROCAL_RANK: Fusion = ReciprocalRank()
CONVEX: Fusion = ConvexCombination()
FUSIONS = {"convex": CONVEX, "reciprocal_rank": RECIPROCAL_RANK}
