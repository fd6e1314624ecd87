"""How good a ranking is, against what people judged relevant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CUT = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """Each from 0 to 1: gain against the best ranking possible, relevant documents found, 1 / place of the first."""

    ndcg: float
    recall: float
    mrr: float

    @classmethod
    def mean(cls, each: Sequence[Figures]) -> Figures:
        count = max(len(each), 1)
        return cls(*(sum(getattr(one, name) for one in each) / count for name in ("ndcg", "recall", "mrr")))


def figures(ranking: Sequence[str], relevant: Mapping[str, float]) -> Figures:
    """Of the first ten, with graded relevance as trec_eval counts it; 0 where nothing is relevant."""
    relevant = {name: grade for name, grade in relevant.items() if grade > 0}
    grades = [relevant.get(name, 0.0) for name in ranking[:CUT]]
    best = _gain(sorted(relevant.values(), reverse=True)[:CUT])
    first = next((place for place, grade in enumerate(grades, 1) if grade), None)
    return Figures(
        ndcg=_gain(grades) / best if best else 0.0,
        recall=sum(grade > 0 for grade in grades) / len(relevant) if relevant else 0.0,
        mrr=1 / first if first else 0.0,
    )


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))
