"""What a request costs in tokens, and how much of it the vendor's prompt cache has seen before."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

LOOKBACK_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class Counted:
    """Input tokens of one request; `fresh` were neither read from the cache nor written to it."""

    fresh: int
    written: int
    read: int

    @property
    def total(self) -> int:
        return self.fresh + self.written + self.read


class PrefixCache:
    """Remembers the prefix up to every cache mark and finds the longest one a later request begins with.

    As the vendor does, it looks back at most 20 blocks from each mark; marks themselves are no part of the prefix.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def count(self, body: dict[str, Any]) -> Counted:
        digest = blake2b(digest_size=16)
        prefixes: list[bytes] = []
        tokens: list[int] = []
        marks: list[int] = []
        total = 0
        for index, (bare, is_marked) in enumerate(_blocks(body)):
            digest.update(bare)
            total += max(1, len(bare) // 4)
            prefixes.append(digest.digest())
            tokens.append(total)
            if is_marked:
                marks.append(index)
        if not marks:
            return Counted(fresh=total, written=0, read=0)
        hits = [
            index
            for mark in marks
            for index in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1)
            if prefixes[index] in self._seen
        ]
        read = tokens[max(hits)] if hits else 0
        written = max(0, tokens[marks[-1]] - read)
        self._seen.update(prefixes[mark] for mark in marks)
        return Counted(fresh=total - read - written, written=written, read=read)


def _blocks(body: dict[str, Any]) -> list[tuple[bytes, bool]]:
    """Every block in cache order, without its mark, and whether it carried one."""
    found = [_bare("tool", tool) for tool in body.get("tools") or ()]
    system = body.get("system") or ()
    found += [_bare("system", block) for block in ([_text(system)] if isinstance(system, str) else system)]
    found.append(_bare("settings", {name: body.get(name) for name in ("tool_choice", "thinking")}))
    for message in body["messages"]:
        content = message["content"]
        for block in [_text(content)] if isinstance(content, str) else content:
            found.append(_bare(message["role"], block))
    return found


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _bare(where: str, block: dict[str, Any]) -> tuple[bytes, bool]:
    is_marked = bool(block.get("cache_control"))
    bare = {name: value for name, value in block.items() if name != "cache_control"} if is_marked else block
    return where.encode() + orjson.dumps(bare), is_marked
