"""The names a model knows a server's tools by: `server__tool`, as vendors take them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container

MOST_CHARACTERS = 64
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """A name of at most 64 letters, digits, _ and -. What is cut or taken gets a mark of its whole name."""
    name = _UNFIT.sub("_", f"{server}__{tool}")
    if len(name) <= MOST_CHARACTERS and name not in taken:
        return name
    mark = hashlib.sha256(f"{server}__{tool}".encode()).hexdigest()[:8]
    return f"{name[: MOST_CHARACTERS - 9]}_{mark}"


def server_and_tool(name: str) -> tuple[str, str]:
    """The server's name, "" for a tool of ours, and the rest."""
    server, separator, tool = name.partition("__")
    return (server, tool) if separator and server else ("", name)
