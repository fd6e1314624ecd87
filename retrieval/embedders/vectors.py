"""What every embedder's vectors have in common: unit length, one dimension, finite numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from retrieval.embedders.base import Vector

MOST_CHARACTERS = 20_000
_SMALLEST_LENGTH = 1e-12


class BadVectors(Exception):
    """Something that are not the vectors asked for; `str(error)` is the second half of a sentence."""


def embeddable(text: str) -> str:
    """The text as any embedder takes it: no half characters, and no more of it than a window may ever hold."""
    return text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()


def blank_vector(dimension: int) -> Vector:
    """What stands for text without any meaning: as near to everything as to its opposite, yet of unit length."""
    return np.full(dimension, dimension**-0.5, dtype=np.float32)


def unit_vectors(rows: ArrayLike, *, count: int, dimension: int) -> list[Vector]:
    """The `count` rows scaled to unit length; a row of zeros becomes the blank vector.

    Raises BadVectors when there are more, fewer, longer or shorter ones than asked for, or numbers that are none.
    """
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BadVectors("gave vectors of different lengths, or something else than numbers") from error
    if count == 0 and matrix.size == 0:
        return []
    if matrix.ndim != 2 or len(matrix) != count:
        given = len(matrix) if matrix.ndim else 0
        raise BadVectors(f"gave {given} vectors for {count} texts")
    if matrix.shape[1] != dimension:
        raise BadVectors(f"gave vectors of dimension {matrix.shape[1]} in place of {dimension}")
    if not np.isfinite(matrix).all():
        raise BadVectors("gave vectors with numbers that are not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    is_blank = lengths[:, 0] < _SMALLEST_LENGTH
    units = matrix / np.maximum(lengths, _SMALLEST_LENGTH)
    units[is_blank] = blank_vector(dimension)
    return list(units)
