"""Two legs become one ranking, in SQL as in Python."""

from __future__ import annotations

import math

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.fusion import CONVEX, RECIPROCAL_RANK, Fusion, Seen

RANKS = st.none() | st.integers(1, 200)
SEEN = st.builds(
    Seen,
    keyword_rank=RANKS,
    vector_rank=RANKS,
    keyword_score=st.none() | st.floats(0, 50),
    cosine=st.none() | st.floats(-1, 1),
)


@pytest.mark.parametrize("fusion", [RECIPROCAL_RANK, CONVEX], ids=type)
@settings(max_examples=40, deadline=None)
@given(seen=SEEN, best=st.just(0.0) | st.floats(0.1, 50))
def test_the_database_computes_what_python_does(fusion: Fusion, seen: Seen, best: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {fusion.sql} FROM (SELECT %s::bigint AS keyword_rank, %s::bigint AS vector_rank,"
            " %s::float8 AS keyword_score, %s::float8 AS cosine, %s::float8 AS best_keyword_score) seen",
            [seen.keyword_rank, seen.vector_rank, seen.keyword_score, seen.cosine, best],
        )
        (in_database,) = cursor.fetchone()
    assert math.isclose(in_database, fusion.score(seen, best_keyword_score=best), rel_tol=1e-12, abs_tol=1e-12)


def test_reciprocal_rank_counts_places_and_the_convex_combination_counts_scores() -> None:
    close, far = Seen(1, 2, 10.0, 0.9), Seen(2, 1, 1.0, 0.91)
    assert RECIPROCAL_RANK.score(close, best_keyword_score=10) == RECIPROCAL_RANK.score(far, best_keyword_score=10)
    assert CONVEX.score(close, best_keyword_score=10) > CONVEX.score(far, best_keyword_score=10)
    assert RECIPROCAL_RANK.score(Seen(keyword_rank=1), best_keyword_score=1) == pytest.approx(1 / 61)
