"""What an embedder said is kept by content, so that unchanged text is never paid for twice."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from klerai.database import in_database
from retrieval.embedders.base import Embedder, Vector
from retrieval.embedders.caching import Cached
from retrieval.errors import EmbedderFailed
from retrieval.models import CachedVector
from retrieval.tasks import forget_unused_vectors
from tests.fakes.vectors import vector_of


class Counting:
    """An embedder that remembers what it was asked, and breaks off at a text that says so."""

    dimension = 8

    def __init__(self) -> None:
        self.name = f"test/{uuid.uuid4().hex}/8"
        self.asked: list[str] = []

    async def embed(self, text: str) -> Vector:
        return (await self.batch_embed([text]))[0]

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        if "break off" in texts:
            raise EmbedderFailed("It broke off.")
        self.asked += texts
        return [np.asarray(vector_of(text, 8), dtype=np.float32) for text in texts]

    async def aclose(self) -> None:
        pass


def _kept(embedder: str) -> int:
    return CachedVector.objects.filter(embedder=embedder).count()


async def test_a_text_is_embedded_once_however_often_it_is_asked_for() -> None:
    counting = Counting()
    first = await Cached(counting).batch_embed(["apples", "pears", "apples"])
    second = await Cached(counting).batch_embed(["pears", "plums", "apples"])
    assert counting.asked == ["apples", "pears", "plums"]
    assert np.allclose([first[0], first[1]], [second[2], second[0]], atol=1e-6)
    assert np.allclose(second, await counting.batch_embed(["pears", "plums", "apples"]), atol=1e-6)


async def test_vectors_of_one_embedder_are_never_given_for_another() -> None:
    one, other = Counting(), Counting()
    await Cached(one).batch_embed(["apples"])
    await Cached(other).batch_embed(["apples"])
    assert other.asked == ["apples"]


async def test_questions_are_not_kept() -> None:
    counting = Counting()
    await Cached(counting).embed("what do I owe my landlord?")
    assert await in_database(_kept, counting.name) == 0


async def test_what_was_paid_for_before_a_failure_is_kept() -> None:
    counting = Counting()
    texts = [f"text {number}" for number in range(1_500)]
    with pytest.raises(EmbedderFailed):
        await Cached(counting).batch_embed([*texts, "break off"])
    assert len(await Cached(counting).batch_embed(texts)) == 1_500
    assert len(counting.asked) == 1_500


async def test_two_that_embed_the_same_text_at_once_both_get_it() -> None:
    cached: Embedder = Cached(Counting())
    texts = [f"text {number}" for number in range(50)]
    one, other = await asyncio.gather(cached.batch_embed(texts), cached.batch_embed(texts[::-1]))
    assert np.allclose(one, other[::-1], atol=1e-6)
    assert await in_database(_kept, cached.name) == 50


async def test_odd_text_is_kept_too() -> None:
    counting = Counting()
    odd = ["", "a\x00b", "half \ud800"]
    assert len(await Cached(counting).batch_embed(odd)) == 3
    assert len(await Cached(counting).batch_embed(odd)) == 3
    assert len(counting.asked) == 3


def test_a_vector_that_nobody_used_for_thirty_days_is_forgotten_in_the_night() -> None:
    counting = Counting()
    asyncio.run(Cached(counting).batch_embed(["used", "unused"]))
    rows = CachedVector.objects.filter(embedder=counting.name)
    rows.update(used_at=timezone.now() - timedelta(days=29))
    asyncio.run(Cached(counting).batch_embed(["used"]))
    (used,) = rows.filter(used_at__gt=timezone.now() - timedelta(days=1))
    rows.exclude(pk=used.pk).update(used_at=timezone.now() - timedelta(days=31))
    forget_unused_vectors(timestamp=0)
    assert [row.pk for row in rows] == [used.pk]
