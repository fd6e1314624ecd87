"""What can happen during a run. A client sees these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class RunStarted:
    type: ClassVar[str] = "run_started"
    conversation_id: str
    query_id: str
    mode: str
    quote: dict[str, int]


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    type: ClassVar[str] = "status_update"
    phase: str
    message: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    type: ClassVar[str] = "reasoning_chunk"
    text: str


@dataclass(frozen=True, slots=True)
class ContentChunk:
    type: ClassVar[str] = "content_chunk"
    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    type: ClassVar[str] = "tool_call_start"
    id: str
    name: str
    label: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    type: ClassVar[str] = "tool_call_result"
    id: str
    name: str
    ok: bool
    summary: str
    duration_ms: int
    credits: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationRequired:
    """A call waits for the person: `arguments` are exactly those it would run with, and `token` works once."""

    type: ClassVar[str] = "confirmation_required"
    id: str
    name: str
    arguments: dict[str, Any]
    token: str


@dataclass(frozen=True, slots=True)
class ContentReplaced:
    """The whole text of this turn so far; what was streamed before it no longer counts."""

    type: ClassVar[str] = "content_replaced"
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class MessageComplete:
    type: ClassVar[str] = "message_complete"
    message_id: str
    text: str
    citations: list[dict[str, Any]]
    receipt: dict[str, Any]
    confidence: float | None = None
    stopped: bool | None = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    type: ClassVar[str] = "error"
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]
    receipt: dict[str, Any]


Terminal = MessageComplete | RunFailed
Event = (
    RunStarted
    | StatusUpdate
    | ReasoningChunk
    | ContentChunk
    | ToolCallStart
    | ToolCallResult
    | ConfirmationRequired
    | ContentReplaced
    | Terminal
)
TERMINAL_TYPES = frozenset({MessageComplete.type, RunFailed.type})


def payload(event: Event) -> dict[str, Any]:
    """The event's data as JSON: its fields, without those that do not apply."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Logged:
    """An event as the log holds it: what a live viewer gets is what a replay gets."""

    seq: int
    type: str
    data: dict[str, Any]

    @property
    def is_terminal(self) -> bool:
        return self.type in TERMINAL_TYPES
