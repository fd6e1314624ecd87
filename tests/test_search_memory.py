"""Indexes in memory for the passages of one question."""

from __future__ import annotations

import math

import pytest

from retrieval.embedders.wordllama import WordLlama
from retrieval.fusion import CONVEX
from retrieval.search_index import Hit, HybridIndex, KeywordIndex, Metric, SearchIndex, VectorIndex

TEXTS = (
    "The physician prescribed a medicine.",
    "Call create_task to run a coroutine in the background.",
    "The train leaves the station at noon.",
    "A medicine for trains does not exist.",
)


async def test_bm25_finds_words_and_parts_of_identifiers() -> None:
    index = KeywordIndex(TEXTS)
    assert [hit.position for hit in await index.search("asyncio.createTask", limit=5)] == [1]
    assert {hit.position for hit in await index.search("medicines", limit=5)} == {0, 3}
    assert await index.search("giraffe", limit=5) == []


async def test_a_word_that_every_text_has_counts_little_and_never_against_a_text() -> None:
    hits = await KeywordIndex(["otter", "otter lake", "otter ice"]).search("otter lake", limit=5)
    assert hits[0].position == 1
    assert all(hit.score > 0 for hit in hits)
    (only,) = await KeywordIndex(["otter"]).search("otter otter", limit=5)
    assert only.score == pytest.approx(math.log(1 + 0.5 / 1.5))


async def test_k1_and_b_can_be_set() -> None:
    texts = ["otter otter otter", "otter lake"]
    saturated = await KeywordIndex(texts, k1=0, b=0).search("otter", limit=2)
    assert saturated[0].score == pytest.approx(saturated[1].score)
    assert (await KeywordIndex(texts, k1=2, b=0).search("otter", limit=2))[0].position == 0


@pytest.mark.parametrize("metric", list(Metric))
async def test_vectors_find_what_is_near_by_either_metric(metric: Metric) -> None:
    index = await VectorIndex.of(TEXTS, WordLlama(), metric=metric)
    hits = await index.search("a doctor's drugs", limit=4)
    assert hits[0].position == 0
    assert hits == sorted(hits, key=lambda hit: -hit.score)


@pytest.mark.parametrize("texts", [[], ["", "…"]])
async def test_nothing_can_be_indexed_too(texts: list[str]) -> None:
    vector = await VectorIndex.of(texts, WordLlama())
    for index in (KeywordIndex(texts), HybridIndex(KeywordIndex(texts), vector)):
        found: list[Hit] = await index.search("otter", limit=5)
        assert len(found) <= len(texts)


async def test_the_hybrid_of_both_is_fused_by_reciprocal_rank_unless_told_otherwise() -> None:
    keyword: SearchIndex = KeywordIndex(TEXTS)
    vector: SearchIndex = await VectorIndex.of(TEXTS, WordLlama())
    query = "medicine of the physician"
    hits = await HybridIndex(keyword, vector).search(query, limit=3)
    assert hits[0] == Hit(0, pytest.approx(2 / 61))
    assert len(hits) == 3
    by_score = await HybridIndex(keyword, vector, fusion=CONVEX).search(query, limit=3)
    assert by_score[0].position == 0
    assert by_score[0].score > 0.5
