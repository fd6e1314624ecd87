"""An answer that leaves through a tool: its sources are checked before its first word, its words heard as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chat.events import ContentChunk, ContentReplaced, StatusUpdate, ToolCallStart
from chat.marks import Unmarking
from chat.messages import ToolCall
from chat.partial_json import Growth, PartialObject, Whole
from chat.sources import Citing, Source, Sources
from chat.tools.base import Tool
from chat.tools.executor import CallDone, Toolbox
from chat.tools.generate_response import MOST_SOURCES
from chat.tools.refusals import Refused
from chat.tools.showing import clean
from chat.tools.validator import HIDDEN, Valid, validate

SOURCES, ANSWER = "sources", "answer"
AGAIN = "the answer could not be used as it came"
Said = ContentChunk | ContentReplaced | StatusUpdate | ToolCallStart | CallDone


@dataclass(slots=True)
class SourceCheck:
    """Whether what an answer names was found in this run.

    An answer with an invented source goes back once; after that, or where it cannot go back, the source is left out.
    """

    sources: Sources
    has_sent_back: bool = False

    def __call__(self, named: Sequence[Any], *, may_send_back: bool) -> list[Source] | Refused:
        meant = [self.sources.meant(reference) for reference in named]
        invented = [str(reference)[:80] for reference, source in zip(named, meant, strict=True) if source is None]
        if invented and may_send_back and not self.has_sent_back:
            self.has_sent_back = True
            return Refused(f"nothing in this run was found as {', '.join(invented[:5])}.", self._guidance())
        self.sources.left_out = len(invented)
        return list(dict.fromkeys(source for source in meant if source is not None))

    def _guidance(self) -> str:
        if not self.sources:
            return "Nothing was found, so name no sources, and say so in the answer."
        return f"Name the sources by the numbers of passages, from 1 to {len(self.sources)}, and only those you used."


@dataclass(slots=True)
class Answering:
    """The answer of one turn. Feed it what is heard of the turn's calls, then the whole call.

    Words wait until the sources have come, and what is refused before its first word is never shown.
    """

    tool: Tool
    toolbox: Toolbox
    check: SourceCheck
    turn: int
    may_send_back: bool
    refusal: Refused | None = None
    is_sent_back: bool = False
    call: ToolCall | None = None
    _reader: PartialObject = field(default_factory=lambda: PartialObject(grows=ANSWER))
    _call_id: str = ""
    _is_late: bool = False
    _written: str = ""
    _shown: str = ""
    _citing: Citing | None = None
    _unmarking: Unmarking = field(default_factory=Unmarking)

    @property
    def is_speaking(self) -> bool:
        return bool(self._shown)

    def detected(self, call_id: str, name: str) -> None:
        """A call has begun. Only one that comes before all others is heard."""
        if not self._call_id and name == self.tool.name and not self._is_late:
            self._call_id = call_id
        self._is_late = True

    def feed(self, call_id: str, piece: str) -> Iterator[Said]:
        """More of a call's arguments."""
        if call_id != self._call_id or self.refusal is not None:
            return
        for found in self._reader.feed(piece):
            match found:
                case Whole(name, list() as named) if name == SOURCES and len(named) <= MOST_SOURCES:
                    yield from self._admit(named)
                case Growth(words):
                    self._written += words
                    yield from self._say(words)

    def again(self) -> Iterator[Said]:
        """The turn is told anew from its beginning; what was shown of it no longer counts."""
        yield from self._take_back()
        if self._citing is not None and self._call_id:
            yield self.toolbox.drop(self._call_id, "It broke off and was written again.")
        self.refusal, self.is_sent_back, self._citing, self._unmarking = None, False, None, Unmarking()
        self._reader, self._call_id, self._is_late, self._written = PartialObject(grows=ANSWER), "", False, ""

    def conclude(self, call: ToolCall) -> Iterator[Said]:
        """The call is whole: say what is still unsaid, or, with a `refusal`, take back what was said."""
        self._call_id, self.call = call.id, _plain(call)
        match validate(self.call, {self.tool.name: self.tool}):
            case Refused() as refusal:
                self.refusal = self.refusal or refusal
            case Valid(arguments=arguments):
                yield from self._complete(arguments[SOURCES], str((call.arguments or {})[ANSWER]))
        if self.refusal is None and not self._shown.strip():
            self.refusal = Refused("answer is empty.", "Write the answer in words.")
        if self.refusal is not None:
            yield from self._take_back()

    def _complete(self, named: list[Any], whole: str) -> Iterator[Said]:
        if self._citing is None and self.refusal is None:
            yield from self._admit(named)
        if self.refusal is not None or self._citing is None:
            return
        if not whole.startswith(self._written):
            yield from self._take_back()
            self._start_over()
        yield from self._say(whole[len(self._written) :])
        yield from self._show(self._citing.feed(self._unmarking.rest()) + self._citing.rest())
        if left_out := self.check.sources.left_out:
            told = "A source the answer named" if left_out == 1 else f"{left_out} sources the answer named"
            lost = "was" if left_out == 1 else "were"
            yield StatusUpdate("sources", f"{told} could not be found and {lost} left out.")

    def _admit(self, named: list[Any]) -> Iterator[Said]:
        """Check the sources; words that waited for them are said."""
        verdict = self.check(named, may_send_back=self.may_send_back)
        if isinstance(verdict, Refused):
            self.refusal, self.is_sent_back = verdict, True
            return
        self._citing = Citing(self.check.sources, named=verdict)
        numbers = self.check.sources.add(verdict)
        yield self.toolbox.begin(ToolCall(self._call_id, self.tool.name, {SOURCES: numbers}))
        yield from self._say(self._written)

    def _say(self, words: str) -> Iterator[Said]:
        if self._citing is not None:
            yield from self._show(self._citing.feed(self._unmarking.feed(words)))

    def _show(self, words: str) -> Iterator[Said]:
        if shown := clean(words):
            self._shown += shown
            yield ContentChunk(shown, self.turn)

    def _take_back(self) -> Iterator[Said]:
        if self._shown:
            self._shown = ""
            yield ContentReplaced("", AGAIN)

    def _start_over(self) -> None:
        assert self._citing is not None
        sources = self.check.sources
        self._citing = Citing(sources, named=sources.cited[: sources.named])
        self._unmarking, self._written = Unmarking(), ""


def _plain(call: ToolCall) -> ToolCall:
    """The call as a tool takes it: what its words may hold is for those who show them to say."""
    arguments = call.arguments or {}
    words = arguments.get(ANSWER)
    if not isinstance(words, str):
        return call
    return replace(call, arguments={**arguments, ANSWER: HIDDEN.sub("", words)})
