"""The way an answer leaves a mode that closes with it (seed 001): its sources first, then its words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput

MOST_SOURCES = 100
_SOURCE = {
    "anyOf": [
        {"type": "integer", "description": "The number of a passage."},
        {"type": "string", "description": "Its title, address or document."},
        {"type": "object", "description": "What the passage says of itself.", "additionalProperties": True},
    ]
}


@dataclass(frozen=True, slots=True)
class GenerateResponse:
    """Gives the person the answer. It is heard while it is written: `sources` are checked before `answer` is shown."""

    name: str = "generate_response"
    description: str = (
        "Gives the person your answer. This is the only way to answer: call it alone and last, once you have what you "
        "need. First name the sources: the numbers of the passages the answer rests on, as they stand at the passages, "
        "or none when nothing was found. Then write the whole answer, with the number of its passage in square "
        "brackets behind each sentence that rests on one."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "sources": {
                    "type": "array",
                    "items": _SOURCE,
                    "maxItems": MOST_SOURCES,
                    "description": "The numbers of the passages the answer rests on, such as [1, 4].",
                },
                "confidence_score": {
                    "type": "number",
                    "description": "How sure you are that the answer is right and whole, from 0.0 to 1.0.",
                },
                "used_internal_kb": {
                    "type": "boolean",
                    "description": "Whether the answer rests on the knowledge base.",
                },
                "used_external_kb": {"type": "boolean", "description": "Whether it rests on sources outside."},
                "answer": {"type": "string", "minLength": 1, "description": "The whole answer, in Markdown."},
            },
            "required": ["sources", "answer"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("Answer from the passages that were found",)
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False
    is_pure: bool = True

    def label(self, arguments: Mapping[str, Any]) -> str:
        return "Write the answer"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        """What can be said of an answer that has left: which sources it really rests on, whatever it claims."""
        origins = [source.origin for source in context.sources.cited]
        told = {
            "citations": len(origins),
            "confidence_score": confidence_in(arguments),
            "used_internal_kb": "internal" in origins,
            "used_external_kb": any(origin != "internal" for origin in origins),
        }
        left_out = context.sources.left_out
        lost = f"; {left_out} that nobody found {'was' if left_out == 1 else 'were'} left out" if left_out else ""
        count = f"{len(origins)} source{'' if len(origins) == 1 else 's'}" if origins else "no sources"
        return ToolOutput(json.dumps(told), f"Answered with {count}{lost}")


def confidence_in(arguments: Mapping[str, Any]) -> float | None:
    """The model's confidence in its answer, from 0 to 1, or None when it gave none."""
    given = arguments.get("confidence_score")
    return None if given is None else float(min(1, max(0, given)))


TOOL = GenerateResponse()
