"""File names of strangers as titles that do no harm wherever they are shown."""

from __future__ import annotations

import hashlib
import re
import unicodedata

LONGEST_TITLE = 200
LONGEST_SOURCE = 300
UNTITLED = "Untitled"
_TURNS_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_SEPARATORS = re.compile(r"[/\\]")
_LONGEST_ENDING = 12


def title_of(name: str) -> str:
    """The last part of a path, without what is not seen, cut so that its ending stays."""
    shown = title_from(_SEPARATORS.split(name.rstrip("/\\"))[-1], longest=len(name))
    if len(shown) <= LONGEST_TITLE:
        return shown
    stem, dot, ending = shown.rpartition(".")
    ending = dot + ending if stem and len(ending) <= _LONGEST_ENDING else ""
    return shown[: LONGEST_TITLE - len(ending) - 1].rstrip() + "…" + ending


def title_from(words: str, *, longest: int = LONGEST_TITLE) -> str:
    """A title that somebody gave, without what is not seen."""
    shown = _shown(words)
    if not shown.strip(". "):
        return UNTITLED
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def source_of(name: str) -> str:
    """What tells a document from its siblings: its name as it was given, or its path within what was ingested."""
    parts = [_shown(part) for part in _SEPARATORS.split(name)]
    source = "/".join(part for part in parts if part.strip(". ")) or UNTITLED
    if len(source) <= LONGEST_SOURCE:
        return source
    return source[: LONGEST_SOURCE - 17] + "…" + hashlib.sha256(source.encode()).hexdigest()[:16]


def _shown(text: str) -> str:
    seen = "".join(" " if unicodedata.category(one) in {"Cc", "Zl", "Zp"} else one for one in text if _is_seen(one))
    return " ".join(seen.split())


def _is_seen(character: str) -> bool:
    return character not in _TURNS_DIRECTION and unicodedata.category(character) not in {"Cs", "Cn"}
