"""The IDs in front of what a model reads, and the removal of those it writes itself."""

from __future__ import annotations

import re

_MARK = re.compile(r"(?:\s*\[ID:[^\]\n]{0,80}\])+\s*")
_BEGINNING = re.compile(r"\s*(?:\[ID:[^\]\n]{0,80}\]\s*)*(?:\[(?:I(?:D(?::[^\]\n]{0,80})?)?)?)?")


def marked(ref: str, text: str) -> str:
    """A whole item under its ID."""
    return f"[ID:{ref}] {text}"


def marked_summary(ref: str, text: str) -> str:
    """A summary under its own ID, naming the item it stands for."""
    return f"[ID:{ref}-sum, ref:{ref}] {text}"


def unmarked(text: str) -> str:
    """The text without IDs at its beginning: a model that has read many imitates them."""
    found = _MARK.match(text)
    return text[found.end() :] if found else text


class Unmarking:
    """The same for a text that arrives in pieces: holds back what may still become an ID, and no more."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False

    def feed(self, piece: str) -> str:
        """What may be shown now; empty while the beginning is undecided."""
        if self._is_decided:
            return piece
        self._held += piece
        if _BEGINNING.fullmatch(self._held):
            return ""
        return self.rest()

    def rest(self) -> str:
        """What was held back, when there is no more to come."""
        self._is_decided = True
        held, self._held = self._held, ""
        return unmarked(held)
