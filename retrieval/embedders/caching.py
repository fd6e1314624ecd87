"""Vectors once paid for are kept, so that unchanged text is never embedded again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256

from django.utils import timezone

from klerai.database import in_database
from retrieval.embedders.base import Embedder, Vector
from retrieval.embedders.vectors import embeddable, unit_vectors
from retrieval.models import CachedVector

KEPT = timedelta(days=30)
_NOTED_EVERY = timedelta(days=1)
_BATCH = 1_000
_KEPT_AT_ONCE = 128  # what vendors take in one request


class Cached:
    """An embedder of which only unknown texts are asked. Questions are not kept: they are people's own words."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    async def embed(self, text: str) -> Vector:
        return await self._embedder.embed(text)

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        """What a request gave is kept before the next one is made, so that a failure or a cut loses little."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._batch(texts[start : start + _BATCH])
        return vectors

    async def aclose(self) -> None:
        await self._embedder.aclose()

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        digests = [_digest(text) for text in texts]
        known = await in_database(_known, self.name, set(digests), self.dimension)
        unknown = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        waiting = list(unknown.items())
        for start in range(0, len(waiting), _KEPT_AT_ONCE):
            part = dict(waiting[start : start + _KEPT_AT_ONCE])
            made = await self._embedder.batch_embed(list(part.values()))
            fresh = dict(zip(part, made, strict=True))
            await in_database(_keep, self.name, fresh)
            known |= fresh
        return [known[digest] for digest in digests]


def forget_unused() -> int:
    """Delete the vectors that nobody used for thirty days; how many they were."""
    return CachedVector.objects.filter(used_at__lt=timezone.now() - KEPT).delete()[0]


def forget_texts(texts: Iterable[str]) -> None:
    """Delete the vectors of these texts, by whichever embedder."""
    CachedVector.objects.filter(sha256__in={_digest(text) for text in texts}).delete()


def _digest(text: str) -> str:
    return sha256(embeddable(text).encode()).hexdigest()


def _known(embedder: str, digests: Iterable[str], dimension: int) -> dict[str, Vector]:
    now = timezone.now()
    rows = CachedVector.objects.filter(embedder=embedder, sha256__in=sorted(digests))
    found = list(rows.values_list("sha256", "vector", "used_at"))
    if any(used_at < now - _NOTED_EVERY for *_, used_at in found):
        rows.update(used_at=now)
    vectors = unit_vectors([vector for _, vector, _ in found], count=len(found), dimension=dimension)
    return {digest: vector for (digest, *_), vector in zip(found, vectors, strict=True)}


def _keep(embedder: str, vectors: Mapping[str, Vector]) -> None:
    """Two that embed the same text at once both succeed; the first one's vector stays."""
    rows = [CachedVector(embedder=embedder, sha256=digest, vector=vector) for digest, vector in sorted(vectors.items())]
    CachedVector.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)
