"""Which words of a passage a query was found by."""

from __future__ import annotations

import re

from retrieval.analysis import terms

MOST_CHARACTERS = 8_000
_WORD = re.compile(r"\S+")
_EDGE = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def emphasised(query: str, text: str) -> list[tuple[int, int]]:
    """The ranges of `text` whose terms the query has too, by the same analysis the keyword index uses."""
    wanted = set(terms(query))
    found = []
    known: dict[str, bool] = {}
    for match in _WORD.finditer(text[:MOST_CHARACTERS]):
        edge = _EDGE.search(match[0])
        if edge is None:
            continue
        word = edge[0]
        if word not in known:
            known[word] = not wanted.isdisjoint(terms(word))
        if known[word]:
            found.append((match.start() + edge.start(), match.start() + edge.end()))
    return found
