"""What a search gives: passages with the rank and score of every stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
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


def found_json(found: Found) -> dict[str, Any]:
    """What every door answers to a search."""
    return {"results": [_passage_json(passage) for passage in found.passages], "degraded": list(found.degraded)}


def _passage_json(passage: Passage) -> dict[str, Any]:
    return {
        "document": {
            "id": str(passage.document_id),
            "external_id": passage.external_id,
            "title": passage.title,
        },
        "knowledge_base": passage.knowledge_base,
        "text": passage.text,
        "section": passage.section,
        "start": passage.start,
        "end": passage.end,
        "page": passage.page,
        "ranks": asdict(passage.ranks),
        "scores": asdict(passage.scores),
    }
