"""Searches the person's knowledge bases by word and by meaning (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.tools.searching import DEFAULT, passages_for


@dataclass(frozen=True, slots=True)
class KnowledgeBaseSearch:
    """Passages with their scores, documents, titles and sections, numbered to be cited."""

    name: str = "knowledge_base_search"
    description: str = (
        "Searches the person's own documents and the shared knowledge bases, by word and by meaning, and returns "
        "numbered passages with document, section and score. Use it before you answer anything their documents may "
        "say, and for questions about KlerAI itself. Write a query of its own: the key concepts, with synonyms and "
        "the terms a text on the matter would use, not the person's sentence."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "What to look for."},
                "kb_id": {
                    "type": "string",
                    "maxLength": 64,
                    "default": DEFAULT,
                    "description": "The knowledge base; default_kb is all of them.",
                },
                "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("What does our handbook say about leave?", "How do daily credits reset?")
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = True
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Search the documents for “{arguments.get('query', '')}”"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        return await passages_for(
            str(arguments["query"]),
            context,
            knowledge_base=str(arguments.get("kb_id") or DEFAULT),
            limit=int(arguments.get("top_k", 5)),
        )


TOOL = KnowledgeBaseSearch()
