"""One turn of a model behind chat completions, put together from the chunks of its stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from chat.errors import FaultKind, ModelFault, ModelRefused
from chat.messages import AssistantMessage, ToolCall, Usage
from chat.strategies.base import (
    ArgumentsPiece,
    ReasoningPiece,
    StrategyEvent,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)
from chat.strategies.dialects import Dialect
from chat.strategies.openai_compatible_faults import fault_in_stream
from chat.strategies.openai_compatible_request import assistant, written_call
from chat.strategies.pieces import call_of, merged

Json = dict[str, Any]

DONE = b"[DONE]"
REASONING_FIELDS = ("reasoning_content", "reasoning")
OVERLOADED_REASON = "insufficient_system_resource"
CHARACTERS_A_TOKEN = 4


@dataclass(slots=True)
class _Call:
    """A call being written. `index` and `given_id` are the vendor's, if it has any; `extra` goes back as it came."""

    id: str
    name: str
    index: int | None
    given_id: str
    written: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)


class Turn:
    """Grows with every read and says what the person may see of it; whole only when a reason to finish was seen.

    It takes what servers make of the protocol: calls in one piece or in many, interleaved, without an index, with their
    id repeated or empty. `prompt_characters` is for the estimate where the vendor counts no tokens.
    """

    def __init__(
        self, model: str, dialect: Dialect, *, prompt_characters: Callable[[], int], spoken_tool: str | None = None
    ) -> None:
        self.model = model
        self.is_over = False
        self.is_speaking = False
        self._dialect = dialect
        self._spoken_tool = spoken_tool
        self._prompt_characters = prompt_characters
        self._words: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._usage: Json = {}
        self._finish_reason = ""
        self._chunk_id = ""
        self._fault: ModelFault | ModelRefused | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything of the answer itself has come; a role alone is none of it."""
        return bool(self._words or self._reasoning or self._calls or self._refusal or self._finish_reason)

    def read(self, events: list[bytes]) -> list[StrategyEvent]:
        """What these events add, words that stand together merged into one piece.

        A fault among them ends the turn; what came before it is still given out, however the reads fell.
        """
        seen: list[StrategyEvent] = []
        try:
            for written in events:
                if self.is_over:
                    break
                if written == DONE:
                    self.is_over = True
                else:
                    self._take(orjson.loads(written), seen)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            self._fail(ModelFault(FaultKind.MALFORMED, detail=f"{type(error).__name__} in the stream"))
        return merged(seen)

    def complete(self) -> TurnComplete:
        """The whole turn, or why there is none."""
        if self._fault is not None:
            raise self._fault
        reason = self._finish_reason
        if not reason:
            raise ModelFault(FaultKind.CUT_SHORT, detail="the answer ended before the vendor said it was over")
        if reason == OVERLOADED_REASON:
            raise ModelFault(FaultKind.OVERLOADED, detail=reason)
        if reason.startswith("content_filter") or self._refusal:
            raise ModelRefused("content_filter" if not self._refusal else "refusal")
        text, is_cut = "".join(self._words), reason == "length"
        calls = [_whole(call, is_cut=is_cut and call is self._calls[-1]) for call in self._calls]
        if not calls and not text.strip():
            raise ModelFault(FaultKind.EMPTY, detail=f"no words and no tool call ({reason})")
        reply = AssistantMessage(text, tuple(calls), self._dialect.name, (self._raw(text, calls),))
        return TurnComplete(reply, self._total(), self.model, is_cut)

    def _fail(self, fault: ModelFault | ModelRefused) -> None:
        self._fault = fault
        self.is_over = True

    def _take(self, chunk: Json | list[Json], seen: list[StrategyEvent]) -> None:
        if isinstance(chunk, list):  # Gemini's way to say that something went wrong
            chunk = chunk[0]
        if chunk.get("error"):
            return self._fail(fault_in_stream(chunk["error"]))
        if usage := chunk.get("usage"):
            self._usage = dict(usage)
        self.model = chunk.get("model") or self.model
        self._chunk_id = self._chunk_id or str(chunk.get("id") or "")
        for choice in (chunk.get("choices") or ())[:1]:
            self._grow(choice.get("delta") or {}, seen)
            self._finish_reason = _text(choice.get("finish_reason")) or self._finish_reason
        self.is_speaking = self.is_speaking and not self._finish_reason
        return None

    def _grow(self, delta: Json, seen: list[StrategyEvent]) -> None:
        if reasoning := _text(next((words for name in REASONING_FIELDS if (words := delta.get(name))), "")):
            self._reasoning.append(reasoning)
            seen.append(ReasoningPiece(reasoning))
        if words := _text(delta.get("content")):
            self._words.append(words)
            seen.append(TextPiece(words))
        if refusal := _text(delta.get("refusal")):
            self._refusal.append(refusal)
        if words or reasoning:
            self.is_speaking = True
        for part in delta.get("tool_calls") or ():
            self._grow_call(part, seen)

    def _grow_call(self, part: Json, seen: list[StrategyEvent]) -> None:
        function = part.get("function") or {}
        name = _text(function.get("name"))
        call = self._call_for(part, name)
        if call is None:
            call = self._open(part, name)
            seen.append(ToolCallDetected(call.id, call.name))
        call.extra.update(part.get("extra_content") or {})
        written = function.get("arguments") or ""
        if not isinstance(written, str):
            written = orjson.dumps(written).decode()
        self.is_speaking = call.name == self._spoken_tool
        if written:
            call.written.append(written)
            if self.is_speaking:
                seen.append(ArgumentsPiece(call.id, written))

    def _call_for(self, part: Json, name: str) -> _Call | None:
        """The call this part belongs to, or None when it opens one: a new index, or a new id that comes with a name."""
        index, given_id = part.get("index"), part.get("id") or ""
        for call in self._calls:
            is_other = bool(name and given_id and call.given_id and given_id != call.given_id)
            if index is not None and call.index == index and not is_other:
                return call
            if index is None and given_id and call.given_id == given_id:
                return call
        if index is None and not name and self._calls:
            return self._calls[-1]
        return None

    def _open(self, part: Json, name: str) -> _Call:
        if not name:
            raise ValueError("a call of no tool")
        given_id = _text(part.get("id"))
        made_id = f"call-{self._chunk_id}-{len(self._calls) + 1}"
        is_taken = any(call.id == given_id for call in self._calls)
        call = _Call(made_id if is_taken or not given_id else given_id, name, part.get("index"), given_id)
        self._calls.append(call)
        return call

    def _raw(self, text: str, calls: list[ToolCall]) -> Json:
        """The turn as it goes back to this vendor, with what it wants to see again."""
        told = [
            written_call(call, "".join(seen.written)) | ({"extra_content": seen.extra} if seen.extra else {})
            for call, seen in zip(calls, self._calls, strict=True)
        ]
        raw = assistant(text, told)
        if self._reasoning and self._dialect.returns_reasoning:
            raw[self._dialect.returns_reasoning] = "".join(self._reasoning)
        return raw

    def _total(self) -> Usage:
        usage = self._usage
        if not usage:
            said = [*self._words, *self._reasoning, *(part for call in self._calls for part in call.written)]
            output = sum(map(len, said)) // CHARACTERS_A_TOKEN
            return Usage(self._prompt_characters() // CHARACTERS_A_TOKEN, max(1, output))
        details = usage.get("prompt_tokens_details")
        details = details if isinstance(details, dict) else {}
        return Usage(
            _count(usage, "prompt_tokens"),
            _count(usage, "completion_tokens"),
            cached=_count(usage, "prompt_cache_hit_tokens") or _count(details, "cached_tokens"),
            cache_written=_count(details, "cache_write_tokens"),
        )


def _count(figures: Json, name: str) -> int:
    figure = figures.get(name)
    return figure if isinstance(figure, int) else 0


def _text(value: object) -> str:
    """Words, or none; anything else is no part of the protocol."""
    if value and not isinstance(value, str):
        raise TypeError("words that are no text")
    return value if isinstance(value, str) else ""


def _whole(call: _Call, *, is_cut: bool) -> ToolCall:
    """The call as it was asked for. Of one the vendor cut off, even nothing at all is no input."""
    written = "".join(call.written)
    if not written.strip() and not is_cut:
        return ToolCall(call.id, call.name, {})
    return call_of(call.id, call.name, written)
