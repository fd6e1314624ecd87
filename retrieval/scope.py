"""What one search reads, and how its windows are best searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from klerai.accounts.models import Person
from retrieval.knowledge import searched
from retrieval.models import KnowledgeBase
from retrieval.vector_index import count_windows

FEW_CHUNKS = 2_000  # whose windows are never worth counting


@dataclass(frozen=True, slots=True)
class Part:
    """The knowledge bases of a scope that share an embedder; without a name they have none."""

    embedder: str
    ids: tuple[UUID, ...]
    is_compared: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """The knowledge bases a person may read under a slug, as far as they hold anything; their chunks and the terms of
    these are counted as BM25 does.
    """

    parts: tuple[Part, ...]
    chunks: int = 0
    total_length: int = 0

    @property
    def ids(self) -> list[UUID]:
        return [base for part in self.parts for base in part.ids]


def scope_of(person: Person | None, slug: str) -> Scope:
    """Raises NoSuchKnowledgeBase."""
    return scope_in(searched(person, slug))


def scope_in(bases: Sequence[KnowledgeBase]) -> Scope:
    """Of knowledge bases that the searcher may read."""
    held = {base: base.statistics for base in bases if hasattr(base, "statistics") and base.statistics.chunks}
    by_embedder: dict[str, list[KnowledgeBase]] = {}
    for base in held:
        by_embedder.setdefault(base.embedder, []).append(base)
    return Scope(
        tuple(
            Part(name, ids, _are_compared(name, ids, chunks=sum(held[base].chunks for base in alike)))
            for name, alike in by_embedder.items()
            for ids in [tuple(base.pk for base in alike)]
        ),
        chunks=sum(statistics.chunks for statistics in held.values()),
        total_length=sum(statistics.total_length for statistics in held.values()),
    )


def _are_compared(embedder: str, ids: Sequence[UUID], *, chunks: int) -> bool:
    return not embedder or chunks <= FEW_CHUNKS or count_windows(embedder, ids, chunks=chunks).are_compared
