"""What a reranker is."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol


class Reranker(Protocol):
    """Says how well each text answers a query: as many scores as texts, in their order, the higher the better."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Awaitable[list[float]]: ...
