"""Keywords without a model: what a question and the titles of its pages speak of, and the names in the answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from retrieval.keyphrases import FEWEST, form_of, problem_with
from retrieval.stop_words import STOP_WORDS

MOST_TAKEN = 6
LONGEST_PHRASE = 4
_READ = 4_000
_PIECE = re.compile(r"[^\W_]+(?:[.'’/&-][^\W_]+)*(?:\+\+|#)?|[^\w\s]")
_QUERY, _TITLE, _TEXT = 4, 2, 1


def extracted(query: str, titles: Sequence[str], text: str) -> list[str]:
    """Up to 6 keywords, the weightiest first; none at all where there are not 3."""
    weights: Counter[str] = Counter()
    written: dict[str, str] = {}
    found = [(_QUERY, phrase) for phrase in _phrases(query)]
    found += [(_TITLE, phrase) for title in titles for phrase in _phrases(title)]
    found += [(_TEXT, name) for name in _names(text[:_READ])]
    for weight, phrase in found:
        form = form_of(phrase)
        written.setdefault(form, phrase)
        weights[form] += weight
    best = sorted(weights, key=lambda form: -weights[form])
    taken = [written[form] for form in best if not problem_with(written[form])][:MOST_TAKEN]
    return taken if len(taken) >= FEWEST else []


def _phrases(text: str) -> Iterator[str]:
    """What stands between stop words and punctuation, if it is more than a word, and every name."""
    for run in _runs(text):
        if len(run) > 1:
            yield " ".join(run[:LONGEST_PHRASE])
    yield from _names(text)


def _names(text: str) -> Iterator[str]:
    """Words with a capital, and those that belong together."""
    for run in _runs(text):
        name: list[str] = []
        for word in [*run, ""]:
            if word[:1].isupper() or (name and word[:1].isdigit()):
                name.append(word)
                continue
            if name:
                yield " ".join(name[:LONGEST_PHRASE])
            name = []


def _runs(text: str) -> Iterator[list[str]]:
    run: list[str] = []
    for piece in [*_PIECE.findall(text), "."]:
        is_word = piece[0].isalnum() and re.sub("['’]", "", piece.casefold()) not in STOP_WORDS
        if is_word:
            run.append(piece)
        elif run:
            yield run
            run = []
