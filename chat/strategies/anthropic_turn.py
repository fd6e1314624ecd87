"""One turn of a Claude model, put together from the events of its stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from chat.errors import FaultKind, ModelFault, ModelRefused
from chat.messages import AssistantMessage, ToolCall, Usage
from chat.strategies.anthropic_request import VENDOR, tool_use
from chat.strategies.base import (
    ArgumentsPiece,
    ReasoningPiece,
    StrategyEvent,
    TextPiece,
    ToolCallDetected,
    TurnComplete,
)
from chat.strategies.pieces import call_of, merged

Json = dict[str, Any]

FAULTS_BY_TYPE = {
    "overloaded_error": FaultKind.OVERLOADED,
    "rate_limit_error": FaultKind.RATE_LIMITED,
    "api_error": FaultKind.SERVER,
    "timeout_error": FaultKind.SERVER,
}
CUT_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})
MAX_DETAIL_CHARACTERS = 500


def fault_of(error_type: str | None) -> FaultKind:
    """What the vendor's word for an error means; a word we do not know is an answer not to ask again."""
    return FAULTS_BY_TYPE.get(error_type or "", FaultKind.REJECTED)


@dataclass(slots=True)
class _Block:
    """A content block being written: as it was opened, and what has been added to it since."""

    opened: Json
    words: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    is_open: bool = True

    @property
    def kind(self) -> str:
        return str(self.opened["type"])

    @property
    def text(self) -> str:
        return "".join(self.words)


class Turn:
    """Grows with every read and says what the person may see of it; whole only when the vendor said why it stopped."""

    def __init__(self, model: str, *, spoken_tool: str | None = None) -> None:
        self.model = model
        self.is_over = False
        self._spoken_tool = spoken_tool
        self._blocks: list[_Block] = []
        self._usage: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._refusal = ""
        self._fault: ModelFault | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything of the answer itself has come; an opened, empty block is none of it."""
        return any(block.words or not block.is_open for block in self._blocks)

    @property
    def is_speaking(self) -> bool:
        """Whether the block being written is one that is shown while it grows."""
        return bool(self._blocks) and self._blocks[-1].is_open and self._is_spoken(self._blocks[-1])

    def _is_spoken(self, block: _Block) -> bool:
        is_call = block.kind == "tool_use" and self._spoken_tool is not None
        return block.kind in ("text", "thinking") or (is_call and block.opened["name"] == self._spoken_tool)

    def read(self, events: list[bytes]) -> list[StrategyEvent]:
        """What these events add, words that stand together merged into one piece.

        A fault among them ends the turn; what came before it is still given out, however the reads fell.
        """
        seen: list[StrategyEvent] = []
        try:
            for written in events:
                if self.is_over:
                    break
                self._take(orjson.loads(written), seen)
        except (KeyError, IndexError, TypeError, AttributeError, orjson.JSONDecodeError) as error:
            self.fail(ModelFault(FaultKind.MALFORMED, detail=f"{type(error).__name__} in the stream"))
        return merged(seen)

    def fail(self, fault: ModelFault) -> None:
        """Nothing more is read of this turn."""
        self._fault = fault
        self.is_over = True

    def complete(self) -> TurnComplete:
        """The whole turn, or why there is none."""
        if self._fault is not None:
            raise self._fault
        if self._stop_reason is None or any(block.is_open for block in self._blocks):
            raise ModelFault(FaultKind.CUT_SHORT, detail="the answer ended before the vendor said it was over")
        if self._stop_reason == "refusal":
            raise ModelRefused(self._refusal)
        is_cut = self._stop_reason in CUT_REASONS
        calls = {
            index: _call(block, is_cut=is_cut and index == len(self._blocks) - 1)
            for index, block in enumerate(self._blocks)
            if block.kind == "tool_use"
        }
        text = "".join(block.text for block in self._blocks if block.kind == "text")
        if not calls and not text.strip():
            raise ModelFault(FaultKind.EMPTY, detail=f"no words and no tool call ({self._stop_reason})")
        raw = [_raw(block, calls.get(index)) for index, block in enumerate(self._blocks)]
        blocks = tuple(block for block in raw if block is not None)
        reply = AssistantMessage(text, tuple(calls.values()), VENDOR, blocks)
        return TurnComplete(reply, self._total(), self.model, is_cut)

    def _take(self, event: Json, seen: list[StrategyEvent]) -> None:
        kind = event["type"]
        if kind == "content_block_delta":
            self._grow(self._blocks[event["index"]], event["delta"], seen)
        elif kind == "content_block_start":
            self._open(event["index"], event["content_block"], seen)
        elif kind == "content_block_stop":
            self._blocks[event["index"]].is_open = False
        elif kind == "message_start":
            self.model = event["message"]["model"]
            self._note_usage(event["message"]["usage"])
        elif kind == "message_delta":
            self._note_usage(event.get("usage") or {})
            self._stop(event["delta"])
        elif kind == "message_stop":
            self.is_over = True
        elif kind == "error":
            failure = event["error"]
            detail = str(failure.get("message"))[:MAX_DETAIL_CHARACTERS]
            self.fail(ModelFault(fault_of(failure.get("type")), detail=detail))

    def _open(self, index: int, opened: Json, seen: list[StrategyEvent]) -> None:
        if index != len(self._blocks):
            raise IndexError(index)
        self._blocks.append(_Block(opened))
        if opened["type"] == "tool_use":
            seen.append(ToolCallDetected(opened["id"], opened["name"]))
        elif opened["type"] == "text" and opened["text"]:
            self._blocks[-1].words.append(opened["text"])
            seen.append(TextPiece(opened["text"]))

    def _grow(self, block: _Block, delta: Json, seen: list[StrategyEvent]) -> None:
        match delta["type"]:
            case "text_delta":
                block.words.append(delta["text"])
                seen.append(TextPiece(delta["text"]))
            case "input_json_delta":
                block.words.append(delta["partial_json"])
                if self._is_spoken(block):
                    seen.append(ArgumentsPiece(block.opened["id"], delta["partial_json"]))
            case "thinking_delta":
                block.words.append(delta["thinking"])
                seen.append(ReasoningPiece(delta["thinking"]))
            case "signature_delta":
                block.signature.append(delta["signature"])

    def _stop(self, delta: Json) -> None:
        self._stop_reason = delta.get("stop_reason") or self._stop_reason
        if self._stop_reason == "refusal":
            self._refusal = str((delta.get("stop_details") or {}).get("category") or "")

    def _note_usage(self, usage: Json) -> None:
        """Later figures stand for the whole turn; a figure that is not named again keeps its value."""
        self._usage.update({name: value for name, value in usage.items() if isinstance(value, int)})

    def _total(self) -> Usage:
        fresh, read, written = (
            self._usage.get(name, 0)
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        return Usage(fresh + read + written, self._usage.get("output_tokens", 0), cached=read, cache_written=written)


def _call(block: _Block, *, is_cut: bool) -> ToolCall:
    """The call a block asks for. Of a block the vendor cut off, even nothing at all is no input."""
    call_id, name, written = block.opened["id"], block.opened["name"], block.text
    if not written and not is_cut:
        return ToolCall(call_id, name, block.opened.get("input") or {})
    return call_of(call_id, name, written)


def _raw(block: _Block, call: ToolCall | None) -> Json | None:
    """The block as it goes back; what the vendor would not take back (no words, no signature) is left out."""
    if call is not None:
        return {**block.opened, **tool_use(call)}
    match block.kind:
        case "text":
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case "thinking":
            signature = "".join(block.signature) or block.opened.get("signature")
            return {**block.opened, "thinking": block.text, "signature": signature} if signature else None
    return block.opened
