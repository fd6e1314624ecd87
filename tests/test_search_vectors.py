"""Few vectors are compared one by one, many are searched by an index, and a small scope among many is never lost."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from klerai.accounts.models import Person
from retrieval.models import KnowledgeBase, Window
from retrieval.ranking import Wanted, passages_in
from retrieval.scope import scope_in
from retrieval.vector_index import MOST_COMPARED, Windows, count_windows, ensure_index
from retrieval.vector_leg import VectorLeg
from tests.harness.knowledge import add_document, make_base
from tests.people import make_alice

DIMENSION = 8
CHUNKS = 125
RANDOM = np.random.default_rng(4)


@pytest.mark.parametrize(
    ("windows", "are_compared"),
    [
        (Windows(in_scope=MOST_COMPARED, in_index=1_000_000), True),
        (Windows(in_scope=MOST_COMPARED + 1, in_index=0), True),
        (Windows(in_scope=MOST_COMPARED + 1, in_index=100_000), False),
        (Windows(in_scope=MOST_COMPARED + 1, in_index=1_000_000), True),
    ],
)
def test_an_index_serves_large_scopes_that_are_no_small_part_of_it(windows: Windows, are_compared: bool) -> None:
    assert windows.are_compared is are_compared


def fill(base: KnowledgeBase, windows: int) -> None:
    """Random vectors of unit length, spread over the chunks of one document."""
    document = add_document(base, *(f"otter {number}" for number in range(CHUNKS)))
    vectors = RANDOM.normal(size=(windows, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = list(document.chunks.all())
    Window.objects.bulk_create(
        (
            Window(
                knowledge_base=base, chunk=chunks[number % CHUNKS], embedder=base.embedder, position=number, vector=it
            )
            for number, it in enumerate(vectors)
        ),
        batch_size=5_000,
    )


def nearest(base: KnowledgeBase, vector: np.ndarray, *, is_compared: bool) -> list[tuple[str, float]]:
    leg = VectorLeg(base.embedder, vector.astype(np.float32), [base.pk], is_compared)
    found = passages_in(scope_in([base]), Wanted(frozenset(), legs=(leg,)), most=10)
    return [(passage.text, round(passage.scores.vector or 0, 6)) for passage in found]


@pytest.fixture
def alice() -> Person:
    return make_alice()


@pytest.mark.thorough
def test_above_twenty_thousand_windows_an_index_finds_nearly_what_comparing_does(alice: Person) -> None:
    embedder = f"test/{uuid.uuid4().hex[:8]}/{DIMENSION}"
    large, small = make_base(alice, embedder=embedder), make_base(alice, embedder=embedder)
    fill(small, CHUNKS)
    assert not ensure_index(embedder, DIMENSION)
    fill(large, MOST_COMPARED + CHUNKS)
    assert ensure_index(embedder, DIMENSION)
    assert ensure_index(embedder, DIMENSION)
    assert not count_windows(embedder, [large.pk], chunks=CHUNKS).are_compared
    assert count_windows(embedder, [small.pk], chunks=CHUNKS).are_compared

    shared = 0
    for _ in range(20):
        vector = RANDOM.normal(size=DIMENSION)
        vector /= np.linalg.norm(vector)
        exact = nearest(large, vector, is_compared=True)
        shared += len(set(exact) & set(nearest(large, vector, is_compared=False)))
        assert nearest(small, vector, is_compared=True) == nearest(small, vector, is_compared=False)
    assert shared >= 0.95 * 20 * 10
