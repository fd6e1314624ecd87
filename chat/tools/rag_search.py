"""Searches everything the person may read, with nothing to choose but the query (seed 004)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.tools.searching import passages_for


@dataclass(frozen=True, slots=True)
class RagSearch:
    """The built-in retrieval of research: passages of all knowledge bases, numbered to be cited."""

    name: str = "rag_search"
    description: str = (
        "Searches all documents the person may read and returns numbered passages with document, section and score. "
        "Search again with other words when the first passages leave something open."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "What to look for."},
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("Compare what the two reports say about churn", "Which sources disagree on this?")
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = True
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Search the documents for “{arguments.get('query', '')}”"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        return await passages_for(str(arguments["query"]), context)


TOOL = RagSearch()
