"""Two legs become one ranking."""

from __future__ import annotations

import pytest

from retrieval.fusion import CONVEX, RECIPROCAL_RANK, Seen


def test_reciprocal_rank_counts_places_and_the_convex_combination_counts_scores() -> None:
    close, far = Seen(1, 2, 10.0, 0.9), Seen(2, 1, 1.0, 0.91)
    assert RECIPROCAL_RANK.score(close, best_keyword_score=10) == RECIPROCAL_RANK.score(far, best_keyword_score=10)
    assert CONVEX.score(close, best_keyword_score=10) > CONVEX.score(far, best_keyword_score=10)
    assert RECIPROCAL_RANK.score(Seen(keyword_rank=1), best_keyword_score=1) == pytest.approx(1 / 61)
