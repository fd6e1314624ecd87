"""Where a text may be cut without taking a character as people see it apart."""

from __future__ import annotations

import unicodedata

_JOINER = "\N{ZERO WIDTH JOINER}"
_EXTENDING = frozenset("\N{ZERO WIDTH NON-JOINER}\u0e33\u0eb3\uff9e\uff9f")
_FARTHEST = 1_000  # characters that one cluster may have before it is cut all the same


def is_boundary(text: str, at: int) -> bool:
    """Whether text[:at] and text[at:] share no grapheme cluster (Unicode UAX 29, on the careful side)."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if after.isascii() or unicodedata.category(before) == "Cc":
        return True
    if _extends(after) or before == _JOINER:
        return False
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, at) % 2 == 0
    return not ("\u1100" <= before <= "\u115f" and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3"))


def boundary_near(text: str, at: int) -> int:
    """The last boundary up to `at`, else the first one after it."""
    for place in range(at, max(at - _FARTHEST, 0), -1):
        if is_boundary(text, place):
            return place
    return next((place for place in range(at, at + _FARTHEST) if is_boundary(text, place)), at)


def _extends(character: str) -> bool:
    return (
        character == _JOINER
        or character in _EXTENDING
        or unicodedata.category(character)[0] == "M"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or "\u1160" <= character <= "\u11ff"
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_before(text: str, at: int) -> int:
    first = at
    while first > 0 and at - first < _FARTHEST and _is_regional(text[first - 1]):
        first -= 1
    return at - first
