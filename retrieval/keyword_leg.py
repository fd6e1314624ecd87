"""BM25 over what a search reads: the postings of its words out of the database, counted here."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from retrieval.postings import CHUNKS_A_BLOCK, POSTING, Postings

# Six megabytes. Beside rarer words those that go beyond it are as good as stop words.
POSTINGS_BUDGET = 1_000_000
MOST_WORDS = 64
ADDED_WEIGHT = 0.5  # of a word that the query does not have

# Rare words first: as many as the budget allows, and one at least. Words are counted over the whole scope, and over
# nothing outside it. OFFSET 0 has blocks looked up by their words, whatever the planner knows of the knowledge base.
_POSTINGS = """
WITH entry AS MATERIALIZED (
    SELECT id, knowledge_base_id, lexeme, chunks FROM retrieval_term
    WHERE knowledge_base_id = ANY(%(scope)s::uuid[]) AND lexeme = ANY(%(lexemes)s::text[])
), word AS MATERIALIZED (
    SELECT lexeme, sum(chunks) AS chunks, sum(sum(chunks)) OVER rarest AS so_far, row_number() OVER rarest AS place
    FROM entry GROUP BY lexeme WINDOW rarest AS (ORDER BY sum(chunks), lexeme)
)
SELECT entry.lexeme, word.chunks::bigint, entry.knowledge_base_id, block.number, block.postings
FROM word JOIN entry USING (lexeme) CROSS JOIN LATERAL (
    SELECT number, postings FROM retrieval_postingblock WHERE term_id = entry.id OFFSET 0
) block
WHERE word.place = 1 OR (word.so_far <= %(budget)s AND word.place <= %(most_words)s)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk of the keyword index, by its number in its knowledge base."""

    knowledge_base: UUID
    number: int


def postings_of(
    scope: Sequence[UUID], lexemes: Set[str], *, budget: int = POSTINGS_BUDGET
) -> tuple[str, dict[str, Any]]:
    """The statement that reads the postings of words in these knowledge bases, and its parameters."""
    parameters = {"scope": list(scope), "lexemes": sorted(lexemes), "budget": budget, "most_words": MOST_WORDS}
    return _POSTINGS, parameters


class KeywordScores:
    """The BM25 score of every chunk of a scope that has one of a query's words."""

    def __init__(self, scores: NDArray[np.float64], begins: dict[tuple[UUID, int], int]) -> None:
        self._scores = scores
        self._begins = begins  # where the chunks of a block begin among the scores
        self._blocks = list(begins)

    @classmethod
    def of(
        cls, rows: Sequence[tuple[str, int, UUID, int, bytes]], *, added: Set[str], chunks: int, total_length: int
    ) -> Self:
        """Of the rows of `postings_of`, in a scope of so many chunks with so many terms together.

        `added` are words that the query does not have itself; they weigh half.
        """
        packed = [row[4] for row in rows]
        sizes = np.array([len(each) // POSTING.itemsize for each in packed], dtype=np.int64)
        postings: Postings = np.frombuffer(b"".join(packed), dtype=POSTING)
        begins = {block: at * CHUNKS_A_BLOCK for at, block in enumerate(sorted({(row[2], row[3]) for row in rows}))}
        having = np.array([row[1] for row in rows], dtype=np.float64)
        weights = np.log1p((chunks - having + 0.5) / (having + 0.5)) * (settings.BM25_K1 + 1)
        weights *= np.where([row[0] in added for row in rows], ADDED_WEIGHT, 1.0)
        starts = np.array([begins[row[2], row[3]] for row in rows], dtype=np.int64)
        slope = settings.BM25_K1 * settings.BM25_B * chunks / max(total_length, 1)
        occurrences = postings["occurrences"].astype(np.float64)
        score = occurrences + settings.BM25_K1 * (1 - settings.BM25_B) + slope * postings["length"]
        np.divide(occurrences, score, out=score)
        score *= np.repeat(weights, sizes)
        places = np.repeat(starts, sizes) + postings["place"]
        scores = np.bincount(places, weights=score, minlength=len(begins) * CHUNKS_A_BLOCK)
        return cls(scores.astype(np.float64, copy=False), begins)

    def best(self, most: int) -> list[int]:
        """Where the highest scores stand, best first; equal ones in the order their chunks were indexed."""
        found = np.flatnonzero(self._scores)
        if len(found) > most:
            scores = self._scores[found]
            found = found[scores >= np.partition(scores, -most)[-most]]
        return [int(at) for at in found[np.lexsort((found, -self._scores[found]))[:most]]]

    def at(self, place: Place) -> int | None:
        """Where the score of a chunk stands; None where no chunk of its block has one of the words."""
        block, at = divmod(place.number, CHUNKS_A_BLOCK)
        begin = self._begins.get((place.knowledge_base, block))
        return None if begin is None else begin + at

    def place(self, at: int) -> Place:
        base, block = self._blocks[at // CHUNKS_A_BLOCK]
        return Place(base, block * CHUNKS_A_BLOCK + at % CHUNKS_A_BLOCK)

    def score(self, at: int | None) -> float:
        """0 for a chunk that has none of the words."""
        return 0.0 if at is None else float(self._scores[at])
