"""One structured call to a small model, as those who ask for it see it: whoever gives it is built elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from chat.messages import ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class Structured:
    """What the model gave: the arguments of the tool it had to call, and what it cost."""

    fields: dict[str, Any]
    usage: Usage


class StructuredCall(Protocol):
    """Has a small model call the one tool `answer`. Raises ChatError; a caller can always do without."""

    def __call__(self, task: str, material: str, *, answer: ToolSpec) -> Awaitable[Structured]: ...
