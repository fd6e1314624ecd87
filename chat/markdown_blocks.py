"""Where one Markdown block ends and the next begins, told line by line while the text still grows."""

from __future__ import annotations

import re
from enum import Enum, auto

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_BULLET = re.compile(r"^ {0,3}[-*+][ \t]+\S")
_ORDERED = re.compile(r"^ {0,3}(?P<number>\d{1,9})[.)][ \t]+\S")
_HEADING = re.compile(r"^ {0,3}#{1,6}([ \t]|$)")
_RULE = re.compile(r"^ {0,3}([-*_])[ \t]*(\1[ \t]*){2,}$")
_TABLE_RULE = re.compile(r"^[ \t|:-]*\|[ \t|:-]*$")


class _Kind(Enum):
    NOTHING = auto()
    TEXT = auto()
    LIST = auto()
    INDENTED = auto()


class BlockSplitter:
    """Cuts a growing text into blocks that can be rendered one by one.

    A block is given back once no later line can change it: at a blank line, after a fence or a heading, and for a
    list at the first line that is no part of it. The cuts depend on the text alone, never on how it arrived.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._kind = _Kind.NOTHING
        self._fence = ""
        self._after_blank = False

    @property
    def open_lines(self) -> str:
        """The whole lines of the block that is still open."""
        return "".join(self._lines)

    def take(self, line: str) -> list[str]:
        """The blocks that this whole line (with its line end) closes."""
        bare = line.rstrip()
        if self._fence:
            return self._inside_fence(line, bare)
        if not bare:
            return self._blank(line)
        closed = self._close() if self._starts_anew(bare) else []
        self._after_blank = False
        if self._kind is _Kind.NOTHING:
            self._kind = _kind_of(bare)
        self._lines.append(line)
        fence = _FENCE.match(bare)
        if fence and not (fence["mark"][0] == "`" and "`" in fence["info"]):
            self._fence = fence["mark"]
        elif _HEADING.match(bare) and self._kind is _Kind.TEXT:
            closed += self._close()
        return closed

    def finish(self) -> list[str]:
        """What is left when no more text comes."""
        self._fence = ""
        return self._close()

    def _inside_fence(self, line: str, bare: str) -> list[str]:
        self._lines.append(line)
        mark = bare.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._fence = ""
            if self._kind is _Kind.TEXT:
                return self._close()
        return []

    def _blank(self, line: str) -> list[str]:
        if self._kind is _Kind.TEXT:
            return self._close()
        if self._kind is not _Kind.NOTHING:
            self._lines.append(line)
            self._after_blank = True
        return []

    def _starts_anew(self, bare: str) -> bool:
        """Whether this line begins a block of its own, so that what came before is finished."""
        match self._kind:
            case _Kind.NOTHING:
                return False
            case _Kind.TEXT:
                return _interrupts(bare)
            case _Kind.LIST:
                if bare.startswith(("  ", "\t")):
                    return False
                if _kind_of(bare) is _Kind.LIST:
                    return False
                return self._after_blank or bool(_FENCE.match(bare) or _HEADING.match(bare) or _RULE.match(bare))
            case _Kind.INDENTED:
                return not bare.startswith(("    ", "\t"))

    def _close(self) -> list[str]:
        block = "".join(self._lines)
        self._lines = []
        self._kind = _Kind.NOTHING
        self._after_blank = False
        return [block] if block.strip() else []


def split_blocks(text: str) -> list[str]:
    """The blocks of a finished text: the same ones that its growing gave."""
    splitter = BlockSplitter()
    *whole, last = text.split("\n")
    blocks = [block for line in whole for block in splitter.take(line + "\n")]
    return blocks + (splitter.take(last) if last else []) + splitter.finish()


def _kind_of(bare: str) -> _Kind:
    if bare.startswith(("    ", "\t")):
        return _Kind.INDENTED
    if _RULE.match(bare) or _TABLE_RULE.match(bare):
        return _Kind.TEXT
    return _Kind.LIST if _BULLET.match(bare) or _ORDERED.match(bare) else _Kind.TEXT


def _interrupts(bare: str) -> bool:
    """Whether this line ends a paragraph above it without a blank line between them."""
    fence = _FENCE.match(bare)
    if (fence and len(fence["indent"]) < 4) or _HEADING.match(bare):
        return True
    if _RULE.match(bare) or _TABLE_RULE.match(bare):
        return False
    ordered = _ORDERED.match(bare)
    return bool(_BULLET.match(bare)) or (ordered is not None and ordered["number"] == "1")
