"""One turn of the model as it is heard, made into what a person sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from chat.closing import Answering
from chat.closing import Said as Spoken
from chat.errors import FaultKind, ModelFault
from chat.events import ContentChunk, ReasoningChunk, StatusUpdate
from chat.marks import Unmarking
from chat.sources import Citing, Sources
from chat.strategies.base import (
    ArgumentsPiece,
    NextCard,
    ReasoningPiece,
    Retrying,
    StrategyEvent,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)
from chat.tools.showing import clean

Said = Spoken | ReasoningChunk


class Hearing:
    """Plain words lose the IDs in front of them and have their passages numbered anew; in a silent turn they are not
    shown, and an answer is heard through its call.
    """

    def __init__(self, turn: int, sources: Sources, *, is_silent: bool, answering: Answering | None) -> None:
        self._turn = turn
        self._is_silent = is_silent
        self._answering = answering
        self._unmarking = Unmarking()
        self._citing = Citing(sources)
        self._complete: TurnComplete | None = None

    @property
    def complete(self) -> TurnComplete:
        """The whole turn. Raises ModelFault when it never came."""
        if self._complete is None:
            raise ModelFault(FaultKind.CUT_SHORT)
        return self._complete

    def take(self, piece: StrategyEvent) -> Iterator[Said]:
        match piece:
            case TextPiece(text):
                yield from self._words(self._unmarking.feed(text))
            case ReasoningPiece(text):
                yield ReasoningChunk(text)
            case ArgumentsPiece(call_id, text):
                if self._answering is not None:
                    yield from self._answering.feed(call_id, text)
            case ToolCallDetected(call_id, name):
                yield from self._detected(call_id, name)
            case Retrying(reason, attempt):
                yield from self._again(f"{reason} Trying again ({attempt}).")
            case NextCard(reason, card_name):
                yield from self._again(f"{reason} Asking {card_name} instead.")
            case TurnComplete():
                self._complete = piece
                yield from self._words(self._unmarking.rest(), is_end=True)
            case _:
                assert_never(piece)

    def _words(self, words: str, *, is_end: bool = False) -> Iterator[Said]:
        if self._is_silent:
            return
        shown = self._citing.feed(words) + (self._citing.rest() if is_end else "")
        if shown:
            yield ContentChunk(clean(shown), self._turn)

    def _detected(self, call_id: str, name: str) -> Iterator[Said]:
        if self._answering is not None:
            self._answering.detected(call_id, name)
            if self._answering.is_speaking:  # a call behind the answer is not run, and the answer's words stand
                return
        yield StatusUpdate("tools", f"Preparing {clean(name)[:128]}")

    def _again(self, words: str) -> Iterator[Said]:
        if self._answering is not None:
            yield from self._answering.again()
        yield StatusUpdate("retrying", words)
