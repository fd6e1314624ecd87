"""Keywords as a model writes them: which are worth keeping, which are the same, and what they are searched by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrieval.analysis import terms
from retrieval.errors import KeywordsRefused
from retrieval.stop_words import STOP_WORDS

FEWEST, MOST = 3, 10
SHORTEST, LONGEST = 2, 50
GUIDANCE = (
    f"Give {FEWEST} to {MOST} keywords of {SHORTEST} to {LONGEST} characters that name what the result is about and "
    "that a later question on it would contain, such as “AAPL stock price” or “quantum computing applications”; not "
    "words like “the” or “information”, which fit anything."
)

_VAGUE = """
"
about actual answer article background basic best content context current data date day description detail
different document example explanation fact find general good guide help how idea important info information issue
item kind knowledge latest list lot main many matter meaning more most name new news note number old other overview
page part people place point problem question reason recent reference report research result right search several
site source stuff subject summary text thing time tip today topic type update use useful user various way web
webpage website what when where who why word world year
"""
_GENERIC = frozenset(_VAGUE.split())
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+(?:\+\+|#)?")  # C, C++ and C# are three


@dataclass(frozen=True, slots=True)
class Keyphrase:
    """A keyword that may be kept. Two of one `form` are the same; `terms` are what a query must contain."""

    text: str
    form: str
    terms: tuple[str, ...]


def checked(written: Sequence[str]) -> list[Keyphrase]:
    """The keywords without their duplicates, in order. Raises KeywordsRefused, which names every bad one."""
    if not FEWEST <= len(written) <= MOST:
        raise KeywordsRefused([f"{len(written)} were given."], GUIDANCE)
    texts = [_SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip() for text in written]
    problems = [problem for text in texts if (problem := problem_with(text))]
    if problems:
        raise KeywordsRefused(list(dict.fromkeys(problems)), GUIDANCE)
    kept: dict[str, Keyphrase] = {}
    for text in texts:
        kept.setdefault(form_of(text), Keyphrase(text, form_of(text), tuple(dict.fromkeys(terms(text)))))
    return list(kept.values())


def form_of(text: str) -> str:
    """The same for keywords that differ in case, spacing, joints or plural only."""
    return " ".join(map(_singular, _words(text)))


def problem_with(text: str) -> str:
    """Why a text is no keyword to keep; empty when it is one."""
    if not text:
        return "One is empty."
    if len(text) < SHORTEST:
        return f"“{text}” is too short."
    if len(text) > LONGEST:
        return f"“{text[:LONGEST]}…” has {len(text)} characters."
    words = list(_words(text))
    if not words or not terms(text):
        return f"“{text}” has no word in it."
    if all(_is_generic(word) for word in words):
        return f"“{text}” is too generic."
    return ""


def _is_generic(word: str) -> bool:
    return (len(word) == 1 and not word.isdigit()) or word in STOP_WORDS or {word, _singular(word)} & _GENERIC != set()


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(text.casefold().replace("'s", "").replace("’s", ""))


def _singular(word: str) -> str:
    """Without the plural of English; a word that only looks like one stays."""
    if len(word) < 4 or not word.isascii() or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]
