"""Answers from passages without a model: sentences that share most with the question, quoted under their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chat.passages import Numbered

MOST_QUOTES = 3
LONGEST_QUOTE = 400
NEEDED_SHARE = 0.5

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$)|\n|$|[.!?])+")
_WORD = re.compile(r"\w{3,}")
_STEM = 5
_SAID_ALWAYS = frozenset(
    _WORD.findall(
        "the and for are was were with from that this what when where which who whom whose why how does did can could "
        "should would will may might must have has had not you your our their its his her any all about into than then "
        "there here they them please tell show give find say says said know"
    )
)


def words_of(text: str) -> set[str]:
    """The words that carry a question, cut to their beginnings so that “resets” meets “reset”."""
    return {word[:_STEM] for word in map(str.lower, _WORD.findall(text)) if word not in _SAID_ALWAYS}


def quoted(question: str, passages: Sequence[Numbered]) -> str | None:
    """The best sentence of each of the best passages; None when none of them is about the question."""
    wanted = words_of(question)
    quotes = [(passage, _best(passage, wanted)) for passage in passages if _is_about(passage, wanted)]
    if not quotes:
        return None
    told = "\n".join(f"- {quote} [{passage.number}]" for passage, quote in quotes[:MOST_QUOTES])
    return (
        f"This is what the documents say:\n\n{told}\n\n"
        "*Answered without a model: the sentences of the passages that match the question best.*"
    )


def _is_about(passage: Numbered, wanted: set[str]) -> bool:
    held = words_of(f"{passage.title} {passage.text}")
    return bool(wanted) and len(wanted & held) >= NEEDED_SHARE * len(wanted)


def _best(passage: Numbered, wanted: set[str]) -> str:
    best = max(_sentences(passage.text), key=lambda sentence: len(wanted & words_of(sentence)), default=passage.text)
    line = " ".join(best.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE].rsplit(' ', 1)[0]}…"


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text):
        sentence = found[0].strip().lstrip("#>*-|0123456789. ").strip()
        if len(sentence) > 20:
            yield sentence
