"""One call of a tool's code, whatever that code does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chat.tools.base import Tool, ToolContext, ToolFailure, ToolOutput


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
