"""Windows: the parts of a passage that are embedded, each small enough for one vector to say what is in it."""

from __future__ import annotations

import re
from bisect import bisect_right

WORDS, OVERLAP = 150, 20
_SPARE = 30  # a last window of fewer new words than this joins the one before
_LONGEST_TOKEN = 80  # characters that count as ten words, so that scripts without spaces come in windows too
_CHARACTERS_A_WORD = 8
_TOKEN = re.compile(rf"\S{{1,{_LONGEST_TOKEN}}}")


def windows_of(text: str) -> list[str]:
    """About WORDS words each, every one beginning OVERLAP words before the last one's end; together the whole text."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    reached = [0]
    for start, end in tokens:
        reached.append(reached[-1] + max(1, (end - start) // _CHARACTERS_A_WORD if end - start > 40 else 1))
    if reached[-1] <= WORDS + _SPARE:
        return [text.strip() or text] if text else []
    windows, first = list[str](), 0
    while True:
        last = _token_at(reached, reached[first] + WORDS, first + 1)
        if reached[-1] - reached[last] < _SPARE:
            last = len(tokens)
        windows.append(text[tokens[first][0] : tokens[last - 1][1]])
        if last == len(tokens):
            return windows
        first = max(_token_at(reached, reached[last] - OVERLAP, first + 1), first + 1)


def _token_at(reached: list[int], words: int, least: int) -> int:
    """The number of tokens that hold about so many words, `least` at least."""
    return max(min(bisect_right(reached, words) - 1, len(reached) - 1), least)
