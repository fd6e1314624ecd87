"""Answers from passages without a model: sentences that share most with the question, quoted under their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chat.passages import Numbered

MOST_QUOTES = 3
LONGEST_QUOTE = 400
NEEDED_SHARE = 0.5

_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[#|]|[-*+] |\d{1,3}[.)] )")
_SENTENCE = re.compile(r".+?(?:[.!?]+[”\"')\]*_]*(?=\s|$)|$)")
_LIST_MARK = re.compile(r"^(?:[-*+>|]|\d{1,3}[.)])\s+")
_SHORTEST = 20
_WORD = re.compile(r"\w{3,}")
_STEM = 5
_SAID_ALWAYS = frozenset(
    _WORD.findall(
        "the and for are was were with from that this what when where which who whom whose why how does did can could "
        "should would will may might must have has had not you your our their its his her any all about into than then "
        "there here they them please tell show give find say says said know"
    )
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage, the heading it stands under and the number of its paragraph."""

    text: str
    heading: str
    paragraph: int


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


def share_told(question: str, text: str) -> float:
    """How many of the question's words the text takes up, from 0 to 1."""
    wanted = words_of(question)
    return round(len(wanted & words_of(text)) / len(wanted), 2) if wanted else 0.0


def _is_about(passage: Numbered, wanted: set[str]) -> bool:
    held = words_of(f"{passage.title} {passage.text}")
    return bool(wanted) and len(wanted & held) >= NEEDED_SHARE * len(wanted)


def _best(passage: Numbered, wanted: set[str]) -> str:
    """The sentence that shares most words with the question, its heading counted half, and the one behind it."""
    told = list(_sentences(passage.text))
    if not told:
        return _cut(" ".join(passage.text.split()))
    scores = [len(wanted & words_of(one.text)) + len(wanted & words_of(one.heading)) / 2 for one in told]
    best = scores.index(max(scores))
    behind = told[best + 1] if best + 1 < len(told) and told[best + 1].paragraph == told[best].paragraph else None
    both = f"{told[best].text} {behind.text}" if behind else told[best].text
    return both if len(both) <= LONGEST_QUOTE else _cut(told[best].text)


def _sentences(text: str) -> Iterator[Sentence]:
    """What a passage states: no headings, no questions; lines of a paragraph are joined."""
    heading = ""
    for number, paragraph in enumerate(_PARAGRAPH.split(text)):
        if paragraph.startswith("#"):
            heading, _, paragraph = paragraph.partition("\n")
        for found in _SENTENCE.findall(_LIST_MARK.sub("", " ".join(paragraph.split()))):
            sentence = found.strip()
            if len(sentence) > _SHORTEST and not sentence.endswith("?"):
                yield Sentence(sentence, heading, number)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rsplit(' ', 1)[0]}…"
