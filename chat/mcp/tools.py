"""A server's tools as tools of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chat.mcp.connection import Connection
from chat.mcp.errors import ServerFault
from chat.mcp.github_places import card_place, file_source, github_label, github_told, repository_link
from chat.mcp.naming import tool_name
from chat.mcp.wording import MOST_ERROR_CHARACTERS, told, worded
from chat.passages import HOW_TO_CITE, quoted_block
from chat.tools.base import Tool, ToolContext, ToolFailure, ToolOutput

if TYPE_CHECKING:
    from chat.mcp.session import Listed, Reply

MOST_DESCRIPTION = 2_000


@dataclass(frozen=True, slots=True)
class ServerTool:
    """One tool of a server. What it gives was written elsewhere, so it counts as private and as outside text.

    Only the server's word that it is read-only makes it so; an answer that it reaches nothing open is taken the same
    way. GitHub's tools reach no address but GitHub's.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    category: str
    fetches: bool
    writes: bool
    title: str
    listed_name: str
    connection: Connection = field(repr=False)
    examples: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    reads_private: bool = True

    def label(self, arguments: Mapping[str, Any]) -> str:
        if self.connection.spec.is_github:
            return f"GitHub: {github_label(self.title, arguments)}"
        return f"{self.connection.spec.name}: {self.title}"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        try:
            reply = await self.connection.call(self.listed_name, arguments, context.progress)
        except ServerFault as fault:
            return ToolFailure(f"The server {self.connection.spec.name} could not do this. {fault}", is_retryable=False)
        if reply.is_error:
            return ToolFailure(worded(reply)[:MOST_ERROR_CHARACTERS], is_retryable=True)
        if self.connection.spec.is_github:
            return _from_github(reply, arguments, context)
        text = worded(reply)
        return ToolOutput(text, told(text))


def tools_of(connection: Connection) -> list[Tool]:
    """The tools of a server by names no two of them share; those it may not offer are left out."""
    found: dict[str, Tool] = {}
    for listed in connection.tools:
        if connection.spec.may_write or listed.is_read_only:
            tool = _tool(listed, connection, tool_name(connection.spec.name, listed.name, found))
            found[tool.name] = tool
    return list(found.values())


def _tool(listed: Listed, connection: Connection, name: str) -> Tool:
    spec = connection.spec
    title = listed.title or listed.name.replace("_", " ").replace("-", " ")
    return ServerTool(
        name=name,
        description=(listed.description or title)[:MOST_DESCRIPTION],
        parameters=listed.schema,
        category=spec.category,
        fetches=not spec.is_github and listed.is_open_world is not False,
        writes=listed.is_read_only is not True,
        title=title[:80],
        listed_name=listed.name,
        connection=connection,
    )


def _from_github(reply: Reply, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    """Files are passages a model may cite by number; all else is text. The card leads to GitHub."""
    found = [(block, file_source(block)) for block in reply.blocks]
    files = [file for _, file in found if file is not None]
    beside = worded(replace(reply, blocks=tuple(block for block, file in found if file is None)))
    if not files:
        return ToolOutput(beside, told(github_told(beside) or beside), card={"sources": repository_link(arguments)})
    numbers = context.sources.add(files)
    blocks = [
        quoted_block(number, {"title": file.title, "section": file.section}, file.text)
        for number, file in zip(numbers, files, strict=True)
    ]
    named = ", ".join(f"{file.section} ({len(file.text):,} characters)" for file in files)
    text = "\n".join([HOW_TO_CITE.format(number=numbers[0]), *blocks, beside])
    return ToolOutput(text, f"{files[0].title}: {named}", card={"sources": list(map(card_place, files))})
