"""Windows: the parts of a passage that are embedded, each small enough for one vector to say what is in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

WORDS, OVERLAP = 150, 20
_LONGEST_TOKEN = 80  # characters that count as ten words, so that scripts without spaces come in windows too
_CHARACTERS_A_WORD = 8
_TOKEN = re.compile(rf"\S{{1,{_LONGEST_TOKEN}}}")


def windows_of(text: str) -> list[str]:
    """Of one length, as near to WORDS words as that allows, overlapping by OVERLAP; together the whole text."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    before = [0, *accumulate(_words(end - start) for start, end in tokens)]
    number = max(1, round((before[-1] - OVERLAP) / (WORDS - OVERLAP)))
    if number == 1:
        return [text.strip() or text] if text else []
    step = (before[-1] - OVERLAP) / number
    windows = []
    for place in range(number):
        first = bisect_right(before, place * step) - 1
        last = min(bisect_left(before, (place + 1) * step + OVERLAP), len(tokens))
        windows.append(text[tokens[first][0] : tokens[last - 1][1]])
    return windows


def _words(characters: int) -> int:
    return 1 if characters <= _LONGEST_TOKEN // 2 else characters // _CHARACTERS_A_WORD
