"""What a server gave, in words for the model, and in a line for the person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chat.passages import without_marks

if TYPE_CHECKING:
    from chat.mcp.session import Reply

MOST_CHARACTERS = 200_000
MOST_ERROR_CHARACTERS = 2_000
_LINE = 160


def worded(reply: Reply) -> str:
    """The text of a reply. What is not text is named with its kind and size, since a model cannot read it here."""
    parts = [_block(block) for block in reply.blocks]
    said = "\n\n".join(part for part in parts if part)
    if reply.structured is not None and not _says(said, reply.structured):
        written = json.dumps(reply.structured, ensure_ascii=False, indent=1)
        said = f"{said}\n\n{written}" if said else written
    return without_marks(said[:MOST_CHARACTERS]) or "It gave nothing back."


def told(text: str) -> str:
    """The same in a line."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[:_LINE].rstrip()}… ({len(text):,} characters)"


def _says(said: str, structured: Any) -> bool:
    """Whether the text is the structured content once more, as the protocol asks servers to write it."""
    try:
        return bool(json.loads(said) == structured)
    except ValueError:
        return False


def _block(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return f"[{kind}, {block.get('mimeType', 'unknown kind')}, {_size(data)}: not shown here]"
        case {"type": "resource", "resource": {"text": str(text)} as resource}:
            return f"{resource.get('uri', 'A resource')}:\n{text}"
        case {"type": "resource", "resource": {"blob": str(blob)} as resource}:
            kind = resource.get("mimeType", "unknown kind")
            return f"[file {resource.get('uri', '')}, {kind}, {_size(blob)}: not shown here]"
        case {"type": "resource_link", "uri": str(uri)}:
            about = block.get("description") or block.get("title") or block.get("name") or ""
            return f"[link {uri}{f': {about}' if about else ''}]"
    return f"[{block.get('type', 'something')}: not shown here]"


def _size(base64: str) -> str:
    size = len(base64) * 3 // 4
    return f"{size:,} bytes" if size < 1_000 else f"{size / 1_000:,.0f} kB"
