"""An MCP server by the SDK itself: the newest protocol, no session, changes told only to who asks for them."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

app = MCPServer("modern")


@app.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
async def add(a: int, b: int, context: Context) -> int:
    """Adds two numbers."""
    await context.report_progress(1, 2, "adding")
    return a + b


@app.tool()
async def grow(context: Context) -> str:
    """Offers another tool from now on."""
    app.add_tool(grown, name="grown")
    await context.notify_tools_changed()
    return "done"


def grown() -> str:
    """Was not there before."""
    return "here"


if __name__ == "__main__":
    app.run()
