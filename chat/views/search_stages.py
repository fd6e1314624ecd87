"""What each stage of a search did, as rows of a table and as a drawing of how the passages moved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from retrieval.emphasis import emphasised
from retrieval.extracts import SECTION_JOINT
from retrieval.passages import Passage

STAGES = ("keyword", "vector", "fused", "reranked")
TO_THE_MODEL = 5
DRAWN = 10

_WHY_ABSENT = {"keyword": "no shared word", "vector": "not among the nearest"}
_EXCERPT, _CLOSE = 400, 200
_HEADING_MARK = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
_FIRST_COLUMN, _COLUMN, _ROW, _TOP = 28, 210, 27, 34
_LABEL, _LABEL_WIDTH = 40, 270


@dataclass(frozen=True, slots=True)
class Cell:
    """A stage's place and score; without a place, why there is none. `share` is the bar, in per cent of the best."""

    stage: str
    rank: int | None
    score: str
    exact: float | None
    share: float
    why: str


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_found: bool


@dataclass(frozen=True, slots=True)
class Row:
    passage: Passage
    title: str
    place: str
    url: str
    pieces: list[Piece]
    cells: list[Cell]
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Knot:
    x: int
    y: int
    rank: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A passage through the stages that saw it."""

    path: str
    knots: list[Knot]
    label: str
    label_x: int
    label_y: int
    is_chosen: bool
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    heads: list[tuple[int, str]]
    lines: list[Line]
    width: int
    height: int


def rows_of(query: str, passages: tuple[Passage, ...]) -> list[Row]:
    """Best first; the first TO_THE_MODEL are what an answer would be drawn from."""
    stages = _stages_of(passages)
    best = {stage: max((_score(each, stage) or 0.0 for each in passages), default=0.0) for stage in stages}
    return [
        Row(
            passage,
            passage.title,
            _place(passage),
            reader_url(passage),
            _pieces(query, passage.text),
            [_cell(passage, stage, best[stage]) for stage in stages],
            is_chosen=place < TO_THE_MODEL,
        )
        for place, passage in enumerate(passages)
    ]


def _place(passage: Passage) -> str:
    """Section and page, without the title once more."""
    section = passage.section.removeprefix(passage.title).removeprefix(SECTION_JOINT)
    return ", ".join(filter(None, (section, f"page {passage.page}" if passage.page else "")))


def reader_url(passage: Passage) -> str:
    """Where the document opens at the passage."""
    page = reverse("knowledge-document", args=[passage.knowledge_base, passage.document_id])
    return f"{page}?{urlencode({'start': passage.start, 'end': passage.end})}#passage"


def drawing_of(passages: tuple[Passage, ...]) -> Drawing | None:
    """None when there is nothing to compare: fewer than two passages."""
    drawn, stages = passages[:DRAWN], _stages_of(passages)
    if len(drawn) < 2:
        return None
    heights = {stage: _heights([_rank(each, stage) for each in drawn]) for stage in stages}
    lines = [_line(place, passage, stages, heights) for place, passage in enumerate(drawn)]
    lowest = max(knot.y for line in lines for knot in line.knots)
    heads = [(_FIRST_COLUMN + _COLUMN * place, stage.capitalize()) for place, stage in enumerate(stages)]
    # drawn last lies on top: the best one
    return Drawing(heads, lines[::-1], _FIRST_COLUMN + _COLUMN * (len(stages) - 1) + _LABEL_WIDTH, lowest + 20)


def _stages_of(passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """Keyword, vector and fused always; reranked when it ran."""
    return STAGES if any(each.ranks.reranked for each in passages) else STAGES[:-1]


def _rank(passage: Passage, stage: str) -> int | None:
    rank: int | None = getattr(passage.ranks, stage)
    return rank


def _score(passage: Passage, stage: str) -> float | None:
    score: float | None = getattr(passage.scores, stage)
    return score


def _cell(passage: Passage, stage: str, best: float) -> Cell:
    rank, score = _rank(passage, stage), _score(passage, stage)
    share = 100 * min(max(score or 0.0, 0.0) / best, 1.0) if best > 0 else 0.0
    why = "" if rank is not None else _WHY_ABSENT.get(stage, "not ranked")
    return Cell(stage, rank, "" if score is None else f"{score:.4f}", score, round(share, 1), why)


def _pieces(query: str, text: str) -> list[Piece]:
    """The part of the text with the most words of the query, and which those are."""
    text = " ".join(_HEADING_MARK.sub("", text).split())
    found = emphasised(query, text)
    first = _densest(found, text)
    excerpt = text[first : first + _EXCERPT]
    pieces, position = [Piece("… ", is_found=False)] if first else [], first
    for start, end in found:
        if first <= start and end <= first + len(excerpt):
            pieces += [Piece(text[position:start], is_found=False), Piece(text[start:end], is_found=True)]
            position = end
    return [piece for piece in (*pieces, Piece(text[position : first + _EXCERPT], is_found=False)) if piece.text]


def _densest(found: list[tuple[int, int]], text: str) -> int:
    """Where an excerpt begins: with the sentence of the first word of those that stand closest together."""
    if len(text) <= _EXCERPT or not found:
        return 0
    best = max(found, key=lambda word: (sum(word[0] <= start < word[0] + _CLOSE for start, _ in found), -word[0]))[0]
    sentence = text.rfind(". ", max(0, best - _CLOSE // 2), best) + 2
    return sentence if sentence > 1 else text.rfind(" ", 0, max(0, best - _CLOSE // 4)) + 1


def _heights(ranks: list[int | None]) -> dict[int, int]:
    """A row for each rank: its own up to DRAWN, and below those the others in their order, without gaps."""
    seen = sorted(rank for rank in ranks if rank is not None)
    below = [rank for rank in seen if rank > DRAWN]
    return {rank: rank - 1 if rank <= DRAWN else DRAWN + below.index(rank) for rank in seen}


def _line(place: int, passage: Passage, stages: tuple[str, ...], heights: dict[str, dict[int, int]]) -> Line:
    is_chosen = place < TO_THE_MODEL
    knots = [
        Knot(_FIRST_COLUMN + _COLUMN * column, _TOP + _ROW * heights[stage][rank], rank, is_chosen=place == 0)
        for column, stage in enumerate(stages)
        if (rank := _rank(passage, stage)) is not None
    ]
    path = " L".join(f"{knot.x},{knot.y}" for knot in knots)
    name = passage.section.rpartition(SECTION_JOINT)[2] or passage.title
    label = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
    return Line(f"M{path}", knots, label, knots[-1].x + 18, knots[-1].y + 4, place == 0, not is_chosen)
