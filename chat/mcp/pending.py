"""A call on its way to the task that owns the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chat.mcp.session import Reply


@dataclass(slots=True)
class Pending:
    name: str
    arguments: Mapping[str, Any]
    progress: Callable[[str], None]
    answer: asyncio.Future[Reply]
    work: asyncio.Task[None] | None = None
    is_second: bool = False

    def fail(self, fault: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(fault)

    def leave(self) -> None:
        self.answer.cancel()
        if self.work is not None:
            self.work.cancel()
