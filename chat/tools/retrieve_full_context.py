"""Opens an item of this conversation again: the whole of what is otherwise sent as a summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.passages import readmitted
from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.transcript import item_on_branch, refs_on_branch
from klerai.database import in_database

PAGE_CHARACTERS = 16_000
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class RetrieveFullContext:
    """Reads an item by its ID, a page at a time."""

    name: str = "retrieve_full_context"
    description: str = (
        "Reads an earlier item of this conversation whole, by the ID it is marked with. Use it when a summary does not "
        "say enough: for the exact words, code, numbers or lists of an earlier question, result or answer. Give the ID "
        "of the item, such as q1-t1 or q2-r, which a summary names after “ref:”."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "id": {"type": "string", "maxLength": 40, "description": "The ID, such as q1-t1."},
                "offset": {"type": "integer", "minimum": 0, "description": "The character to read on from."},
            },
            "required": ["id"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("Show me the full result from earlier", "What exactly did you say about that?")
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = True
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Open {_plain(arguments.get('id', ''))} again"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        ref, offset = _plain(arguments["id"]), int(arguments.get("offset", 0))
        own = context.results.get(ref)
        if own is not None:
            return _page(ref, own, offset)
        item = await in_database(item_on_branch, context.run_id, ref)
        if item is not None and item.reopens:
            ref = item.reopens
            item = await in_database(item_on_branch, context.run_id, ref)
        if item is None:
            known = [*await in_database(refs_on_branch, context.run_id), *context.results]
            return ToolFailure(_not_found(ref, list(dict.fromkeys(known))), is_retryable=True)
        return _page(ref, readmitted(item.content, item.card, context.sources), offset)


def _plain(written: Any) -> str:
    """The ID itself, also when it was written with its brackets or as the summary's."""
    return str(written).strip().strip("[]").removeprefix("ID:").split(",")[0].strip().removesuffix("-sum")


def _page(ref: str, text: str, offset: int) -> ToolOutput | ToolFailure:
    if offset and offset >= len(text):
        return ToolFailure(f"{ref} has {len(text):,} characters; offset {offset} is behind its end.", is_retryable=True)
    page = text[offset : offset + PAGE_CHARACTERS]
    end = offset + len(page)
    if end < len(text):
        rest = f'retrieve_full_context(id="{ref}", offset={end})'
        page = f"{page}\n[Characters {offset:,} to {end:,} of {len(text):,}. To read on: {rest}]"
    part = "" if end == len(text) and not offset else f", characters {offset:,} to {end:,} of {len(text):,}"
    return ToolOutput(page, f"Opened {ref} again{part}", reopens=ref)


def _not_found(ref: str, known: list[str]) -> str:
    listed = ", ".join(known[-MOST_LISTED:]) or "none yet"
    return f"ID not found: {ref}. The IDs of this conversation: {listed}."


TOOL = RetrieveFullContext()
