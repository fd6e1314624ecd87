"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into vectors of unit length. Raises EmbedderFailed.

    `name` says all that decides where a text comes to lie: vendor, model and dimension, such as
    `voyage/voyage-3-large/1024`. Vectors under different names are never compared.
    """

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...

    async def embed(self, text: str) -> Vector:
        """The vector of a question."""
        ...

    async def batch_embed(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of passages, in their order; any number of them."""
        ...

    async def aclose(self) -> None: ...
