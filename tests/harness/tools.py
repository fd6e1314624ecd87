"""Tools for tests: each keeps the Tool protocol and does one thing, good or bad."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.tools.base import Tool, ToolContext, ToolFailure, ToolOutput

Work = Callable[[Mapping[str, Any]], Awaitable[ToolOutput | ToolFailure]]


@dataclass(frozen=True, slots=True)
class Scripted:
    """A tool whose work a test writes."""

    name: str
    work: Work
    category: str = "tool"
    description: str = "Does what the test says."
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    examples: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"{self.name} {arguments.get('words', '')}".strip()

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        return await self.work(arguments)


def tool(name: str, work: Work, **more: Any) -> Tool:
    return Scripted(name, work, **more)


def says_at_once(text: str, *, summary: str = "done") -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(text, summary)

    return work


def raises(error: Exception) -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        raise error

    return work


def hangs() -> Work:
    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    return work


def does(act: Callable[[], object]) -> Work:
    """Does `act` in a thread."""

    async def work(arguments: Mapping[str, Any]) -> ToolOutput:
        await asyncio.to_thread(act)
        return ToolOutput("It is done.", "done")

    return work


def by_name(*tools: Tool) -> dict[str, Tool]:
    return {one.name: one for one in tools}
