"""What a stream gives, put together: words that stand side by side, and the arguments of a call."""

from __future__ import annotations

import orjson

from chat.messages import ToolCall
from chat.strategies.base import ArgumentsPiece, ReasoningPiece, StrategyEvent, TextPiece


def merged(seen: list[StrategyEvent]) -> list[StrategyEvent]:
    """Words of one kind that stand together as one piece."""
    pieces: list[StrategyEvent] = []
    for piece in seen:
        joined = _joined(pieces[-1], piece) if pieces else None
        if joined is None:
            pieces.append(piece)
        else:
            pieces[-1] = joined
    return pieces


def call_of(call_id: str, name: str, written: str) -> ToolCall:
    """The call a model wrote; what is no JSON object is kept as it was written."""
    try:
        arguments = orjson.loads(written)
    except orjson.JSONDecodeError:
        arguments = None
    if isinstance(arguments, dict):
        return ToolCall(call_id, name, arguments)
    return ToolCall(call_id, name, None, written)


def _joined(before: StrategyEvent, after: StrategyEvent) -> StrategyEvent | None:
    match before, after:
        case TextPiece(text), TextPiece(more):
            return TextPiece(text + more)
        case ReasoningPiece(text), ReasoningPiece(more):
            return ReasoningPiece(text + more)
        case ArgumentsPiece(call, text), ArgumentsPiece(same, more) if call == same:
            return ArgumentsPiece(call, text + more)
    return None
