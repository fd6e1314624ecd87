"""What a tool is, what it is told and what it may give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from chat.sources import Sources
from chat.structured import StructuredCall


def _silent(words: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a tool runs. Tenancy comes from here, never from the arguments."""

    person_id: UUID
    conversation_id: UUID
    run_id: UUID
    results: Mapping[str, str] = field(default_factory=dict)  # what this run's own tools gave, by ID
    sources: Sources = field(default_factory=Sources)  # the passages found in this run, to be cited by number
    small: StructuredCall | None = None  # for picks and rankings, where there is such a model
    knowledge_base: str | None = None  # the only one to search, where the person named one
    seconds: float = 30  # what the call may take; after that it is cut off
    progress: Callable[[str], None] = _silent  # how far the call is, in a few words for the person


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result: `text` for the model, `summary` in one line for the person.

    A tool that only opens an item again names it in `reopens`; memory then keeps the ID and `summary`, no copy.
    `card` is what else stands on its card, as JSON.
    """

    text: str
    summary: str
    reopens: str = ""
    card: Mapping[str, Any] = field(default_factory=dict)


CORRECT = "You may correct the call and try again."
GO_ON = "Trying again will not help."


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """An expected failure, worded for the model; `is_retryable` says whether other arguments can help."""

    message: str
    is_retryable: bool

    @property
    def told(self) -> str:
        """The message, and what it means for the model's next step."""
        return f"{self.message}\n{CORRECT if self.is_retryable else GO_ON}"


class Tool(Protocol):
    """Something a model may call. One file each in chat/tools, offered there as `TOOL`.

    `parameters` is a JSON Schema object, and every call is held to it before `run`. A field that is a path, an address
    or SQL says so by its `format`: "path" may not lead upwards and "relative-path" not begin elsewhere either, "uri" is
    public and http or https, "sql" is one statement that reads. `category` decides the price. One whose results hold
    nobody else's words may say so with `is_pure`; all others taint a run. One whose results have to be worked up names
    the tool that does it in `owes`. A bug may raise; what can be expected to go wrong is a ToolFailure.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def examples(self) -> tuple[str, ...]: ...
    @property
    def category(self) -> str: ...
    @property
    def contexts(self) -> tuple[str, ...]: ...
    @property
    def reads_private(self) -> bool: ...
    @property
    def fetches(self) -> bool: ...
    @property
    def writes(self) -> bool: ...

    def label(self, arguments: Mapping[str, Any]) -> str:
        """The card's heading, in plain words."""
        ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure: ...


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A finished call as memory keeps it: the whole result under its ID, and what its card shows."""

    ref: str
    tool: str
    content: str
    is_ok: bool
    card: dict[str, Any]
    reopens: str = ""
    read: str = ""  # what the model read, where that is not what is kept
