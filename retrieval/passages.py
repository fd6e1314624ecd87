"""What a search gives: passages with the rank and score of every stage."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Ranks:
    """Places from 1, None where a stage did not see the passage or did not run."""

    keyword: int | None = None
    vector: int | None = None
    fused: int | None = None
    reranked: int | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """BM25 (0 and up), cosine (-1 to 1), fused and reranked score; None as in Ranks."""

    keyword: float | None = None
    vector: float | None = None
    fused: float | None = None
    reranked: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found: the characters `start` to `end` of its document."""

    document_id: UUID
    external_id: str
    title: str
    section: str
    text: str
    start: int
    end: int
    page: int | None
    knowledge_base: str
    ranks: Ranks
    scores: Scores


@dataclass(frozen=True, slots=True)
class Found:
    """The passages, best first. `degraded` says in a sentence each which leg was missing and why."""

    passages: tuple[Passage, ...]
    degraded: tuple[str, ...] = ()
