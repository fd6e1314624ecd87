"""What is said in a run, in the order a model reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chat.marks import marked, marked_summary


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told about it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to use a tool.

    `arguments` is None when what the model wrote was no JSON object; `written` is then what it wrote.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    written: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back, worded for the model; `is_summary` when the whole stands elsewhere under `ref`."""

    call_id: str
    name: str
    text: str
    ok: bool = True
    ref: str = ""
    is_summary: bool = False

    @property
    def sent(self) -> str:
        """The text under its ID."""
        if not self.ref:
            return self.text
        return marked_summary(self.ref, self.text) if self.is_summary else marked(self.ref, self.text)


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the person said; `material` was found for it, `aside` stands with it and is not theirs, such as the date.

    `instructions` are what the program they ask with wants of the answer.
    """

    text: str
    aside: str = ""
    material: str = ""
    instructions: str = ""

    @property
    def sent(self) -> str:
        parts = (self.instructions, self.text, self.material, self.aside and f"[{self.aside}]")
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One turn of the model.

    `blocks` are the vendor's own blocks, kept byte for byte and sent back to the vendor named in `vendor` inside
    the same run (thinking signatures demand it); any other reader uses `text` and `tool_calls`.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    vendor: str = ""
    blocks: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The results of all the calls of one turn, in call order."""

    results: tuple[ToolResult, ...]


Message = UserMessage | AssistantMessage | ToolResults


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call. `input` counts everything read, what came from the cache included."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
        )


@dataclass(slots=True)
class Transcript:
    """What the model is shown: a system prompt that never changes and messages that only grow."""

    system: str
    messages: list[Message] = field(default_factory=list)
