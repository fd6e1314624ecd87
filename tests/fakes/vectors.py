"""Vectors that mean something, as the fakes of embedding services give them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray


def vector_of(text: str, dimension: int, *, kind: str = "") -> list[float]:
    """A unit vector seeded by the words, so that texts which share words are near; `kind` moves it a little."""
    total = np.zeros(dimension)
    for word in text.lower().split() or [""]:
        total += _word(word, dimension)
    total += 0.1 * np.linalg.norm(total) / dimension**0.5 * _word(f"\0{kind}", dimension)
    return [float(number) for number in total / np.linalg.norm(total)]


@lru_cache(maxsize=10_000)
def _word(word: str, dimension: int) -> NDArray[np.float64]:
    seed = int.from_bytes(sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)
