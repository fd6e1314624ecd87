"""Many texts cut into what a vendor takes at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from retrieval.embedders.base import Vector
from retrieval.embedders.vectors import blank_vector, embeddable


@dataclass(frozen=True, slots=True)
class Limits:
    """The most texts of one request, and the most bytes of all of them together."""

    texts: int
    bytes: int


async def embed_in_batches(
    texts: Sequence[str],
    embed: Callable[[list[str]], Awaitable[list[Vector]]],
    *,
    limits: Limits,
    dimension: int,
) -> list[Vector]:
    """The vectors in the order of the texts. Empty ones are not sent, as vendors refuse them."""
    vectors = [blank_vector(dimension) for _ in texts]
    sendable = [embeddable(text) for text in texts]
    for places in _batches(sendable, limits):
        made = await embed([sendable[place] for place in places])
        for place, vector in zip(places, made, strict=True):
            vectors[place] = vector
    return vectors


def _batches(texts: Sequence[str], limits: Limits) -> Iterator[list[int]]:
    places: list[int] = []
    filled = 0
    for place, text in enumerate(texts):
        if not text.strip():
            continue
        size = len(text.encode())
        if places and (len(places) == limits.texts or filled + size > limits.bytes):
            yield places
            places, filled = [], 0
        places.append(place)
        filled += size
    if places:
        yield places
