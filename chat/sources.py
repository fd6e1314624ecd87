"""The passages of a run by the numbers a model cites them with, and the numbers a person reads instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Origin = Literal["internal", "documentation", "github", "web"]

ORIGINS: Mapping[Origin, str] = MappingProxyType(
    {"internal": "documents", "documentation": "documentation", "github": "GitHub", "web": "web"}
)
MOST_NUMBERS = 999
QUOTE_CHARACTERS = 300

_MARK = re.compile(r"(?P<gap>[ \t]*)\[(?P<numbers>\d{1,3}(?:\s*,\s*\d{1,3}){0,9})\](?P<after>\(?)")
_MAYBE = re.compile(r"[ \t]*(?:\[[\d,\s]{0,60}\]?)?")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")
_WORD = re.compile(r"\w{3,}")
_REFERENCE = re.compile(r"(?:passage|source)?\s*\[?(\d{1,3})\]?", re.IGNORECASE)
_NAMES = ("n", "number", "id", "document_id", "url", "title")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a passage stands: characters `start` to `end` of a document, or an address outside.

    `ranks` and `scores` say how the search found it.
    """

    title: str
    text: str
    start: int
    end: int
    origin: Origin
    section: str = ""
    document_id: str | None = None
    url: str | None = None
    ranks: Mapping[str, int | None] | None = field(default=None, compare=False)
    scores: Mapping[str, float | None] | None = field(default=None, compare=False)


@dataclass(slots=True)
class Sources:
    """What a run has found so far, and what of it the turn that streams has cited, in order of first use.

    Numbers count from 1 in the order in which passages were found. The first `named` of those cited are sources of the
    answer as a whole: they count whether or not its text has their numbers. `left_out` counts sources that the answer
    named and nobody found.
    """

    cited: list[Source] = field(default_factory=list)
    named: int = 0
    left_out: int = 0
    _found: list[Source] = field(default_factory=list)

    def add(self, sources: Iterable[Source]) -> list[int]:
        """The number of each: a passage that was found before keeps its own."""
        return [self._number(source) for source in sources]

    def get(self, number: int) -> Source | None:
        return self._found[number - 1] if 0 < number <= len(self._found) else None

    def meant(self, reference: Any) -> Source | None:
        """The passage that a model means: by its number, or by what it was told of it."""
        match reference:
            case bool() | None:
                return None
            case int():
                return self.get(reference)
            case str() if number := _REFERENCE.fullmatch(reference.strip()):
                return self.get(int(number[1]))
            case str():
                return self._called(reference)
            case Mapping():
                parts = [part for name in _NAMES if isinstance(part := reference.get(name), str | int)]
                return next((found for part in parts if (found := self.meant(part)) is not None), None)
        return None

    def _called(self, name: str) -> Source | None:
        wanted = name.strip().casefold()
        return next((one for one in self._found if wanted and wanted in _names_of(one)), None)

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def _number(self, source: Source) -> int:
        if source in self._found:
            return self._found.index(source) + 1
        if len(self._found) >= MOST_NUMBERS:
            return MOST_NUMBERS
        self._found.append(source)
        return len(self._found)


class Citing:
    """Rewrites the numbers of passages, as a text streams, into 1, 2, 3 in order of first use.

    Numbers that no passage has are dropped. Code keeps its brackets, as do Markdown links. Without any passage found
    the text stays as it is. Feed it one turn. The passages in `named` have the first numbers.
    """

    def __init__(self, sources: Sources, *, named: Iterable[Source] = ()) -> None:
        self._sources = sources
        self._held = ""
        self._line = ""
        self._is_fenced = False
        sources.cited = list(named)
        sources.named = len(sources.cited)

    def feed(self, piece: str) -> str:
        """What may be shown now: all but an end that may still become a number."""
        if not self._sources:
            return self._seen(piece)
        text = self._held + piece
        self._held = _open_end(text)
        return self._rewritten(text[: len(text) - len(self._held)])

    def rest(self) -> str:
        """What was held back, when there is no more to come."""
        held, self._held = self._held, ""
        return self._rewritten(held) if self._sources else held

    def _rewritten(self, text: str) -> str:
        parts: list[str] = []
        end = 0
        for mark in _MARK.finditer(text):
            parts.append(self._seen(text[end : mark.start()]))
            parts.append(self._seen(mark[0]) if mark["after"] or self._is_code() else self._renumbered(mark))
            end = mark.end()
        return "".join([*parts, self._seen(text[end:])])

    def _renumbered(self, mark: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", mark["numbers"])]
        known = [source for number in dict.fromkeys(numbers) if (source := self._sources.get(number)) is not None]
        cited = self._sources.cited
        cited += [source for source in known if source not in cited]
        shown = "".join(f"[{cited.index(source) + 1}]" for source in known)
        return f"{mark['gap']}{shown}" if shown else ""

    def _seen(self, text: str) -> str:
        """Follow where code begins and ends."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            if _FENCE.match(line):
                self._is_fenced = not self._is_fenced
        return text

    def _is_code(self) -> bool:
        return self._is_fenced or self._line.count("`") % 2 == 1


def _open_end(text: str) -> str:
    """The end of the text that may be the beginning of a mark, or a mark whose next character decides."""
    tail = text[-80:]
    if "[" not in tail and tail[-1:] not in (" ", "\t"):
        return ""
    for start in range(len(tail)):
        if tail[start] in " \t[" and _MAYBE.fullmatch(tail, start):
            return tail[start:]
    return ""


def citations_of(text: str, cited: Iterable[Source], *, named: int = 0) -> tuple[dict[str, Any], ...]:
    """The contract's citations of an answer, each with the words of its passage that stand nearest to the answer's.

    A passage whose number did not make it into the text, because it was stopped before, is left out, unless it is one
    of the first `named`.
    """
    return tuple(
        {
            "n": number,
            "title": source.title,
            "url": source.url,
            "document_id": source.document_id,
            "section": source.section or None,
            "quote": _quote(source.text, _sentence_with(text, number)),
            "start": source.start,
            "end": source.end,
            "origin": source.origin,
            **({"ranks": dict(source.ranks), "scores": dict(source.scores or {})} if source.ranks else {}),
        }
        for number, source in enumerate(cited, start=1)
        if number <= named or f"[{number}]" in text
    )


def without_numbers(text: str, citations: Iterable[Mapping[str, Any]]) -> str:
    """An answer as later questions are sent it: its numbers would name other passages there."""
    numbers = {citation["n"] for citation in citations}
    if not numbers:
        return text
    return re.sub(r"[ \t]?\[(\d{1,3})\](?!\()", lambda mark: "" if int(mark[1]) in numbers else mark[0], text)


def confidence_words(confidence: float) -> str:
    return f"Confidence {round(confidence * 100)} %"


def section_below(title: str, section: str | None) -> str:
    """The section path without the document's title, with which it often begins."""
    path = (section or "").split(" › ")
    return " › ".join(path[1:] if path[0] == title else path)


def _sentence_with(text: str, number: int) -> str:
    at = text.find(f"[{number}]")
    if at < 0:
        return text
    before = text[:at].rstrip()
    start = max(before.rfind(end, 0, max(0, len(before) - 1)) for end in (". ", "! ", "? ", "\n"))
    return before[start + 1 :]


def _names_of(source: Source) -> set[str]:
    names = (source.title, source.url, source.document_id, section_below(source.title, source.section))
    return {name.casefold() for name in names if name}


def _quote(passage: str, sentence: str) -> str:
    """The sentence of the passage that shares most words with the answer's."""
    wanted = _words(sentence)
    best = max(_sentences(passage), key=lambda quote: len(wanted & _words(quote)), default=passage)
    return " ".join(best.split())[:QUOTE_CHARACTERS]


def _sentences(passage: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(passage):
        if len(found[0].strip()) > 1:
            yield found[0].strip()


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
