"""One call of a tool's code, whatever that code does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from chat.tools.base import Tool, ToolContext, ToolFailure, ToolOutput

T = TypeVar("T")
GRACE_SECONDS = 1.0


class ToolBroke(Exception):
    """A tool did what no tool may: it tried to end the process or the run, or gave something that is no result."""


async def attempt(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
    """What the tool gives. Raises what it raises, in a form that ends this call and nothing else."""
    try:
        output: object = await tool.run(arguments, context)
    except SystemExit as error:
        raise ToolBroke("it tried to end the process") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ToolBroke("it cancelled itself") from error
    match output:
        case ToolOutput(text=str(), summary=str()) | ToolFailure(message=str()):
            return output
    raise ToolBroke("what it gave is no result")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. Raises TimeoutError after `seconds`, and is not held up by work that will not be cancelled.

    Such work is left behind after a second of grace; what it still gives or raises nobody hears.
    """
    task = asyncio.create_task(work)
    try:
        finished, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _leave(task)
        raise
    if finished:
        return task.result()
    await _leave(task)
    raise TimeoutError


async def _leave(task: asyncio.Task[Any]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
