"""How the postings of a word are kept: blocks of packed numbers, each for a range of a knowledge base's chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHUNKS_A_BLOCK = 4_096
MOST_COUNTED = 2**16 - 1
# The place of a chunk in its block, how often it has the word, and its length in terms; six bytes.
POSTING = np.dtype([("place", "<u2"), ("occurrences", "<u2"), ("length", "<u2")])

Postings = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Counted:
    """A chunk by its number in the knowledge base, with the terms it has and how often."""

    number: int
    occurrences: Counter[str]

    @property
    def length(self) -> int:
        return self.occurrences.total()


def blocks_of(counted: Sequence[Counted]) -> dict[tuple[str, int], bytes]:
    """The postings of these chunks, packed, by term and number of the block."""
    terms = [term for each in counted for term in each.occurrences]
    sizes = [len(each.occurrences) for each in counted]
    numbers = np.repeat(np.array([each.number for each in counted], dtype=np.int64), sizes)
    postings = np.zeros(len(terms), dtype=POSTING)
    postings["place"] = numbers % CHUNKS_A_BLOCK
    postings["occurrences"] = _bounded(count for each in counted for count in each.occurrences.values())
    postings["length"] = np.repeat(_bounded(each.length for each in counted), sizes)
    known = {term: at for at, term in enumerate(dict.fromkeys(terms))}
    ids = np.array([known[term] for term in terms], dtype=np.int64)
    blocks = numbers // CHUNKS_A_BLOCK
    order = np.lexsort((numbers, blocks, ids))
    ids, blocks, postings = ids[order], blocks[order], postings[order]
    starts = np.flatnonzero(np.diff(ids, prepend=-1) | np.diff(blocks, prepend=-1))
    ends = [*starts[1:], len(postings)]
    names = list(known)
    return {
        (names[ids[start]], int(blocks[start])): postings[start:end].tobytes()
        for start, end in zip(starts, ends[: len(starts)], strict=True)
    }


def without(packed: bytes, places: Set[int]) -> bytes:
    """A block without the postings of the chunks at these places."""
    postings: Postings = np.frombuffer(packed, dtype=POSTING)
    return postings[~np.isin(postings["place"], list(places))].tobytes()


def _bounded(counts: Iterable[int]) -> NDArray[np.int64]:
    return np.minimum(np.fromiter(counts, dtype=np.int64), MOST_COUNTED)
