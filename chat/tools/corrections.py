"""How often a model may correct a call: a tool it cannot get right must not eat a run's turns."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from chat.tools.refusals import Refused

T = TypeVar("T")
MOST_CORRECTIONS = 2
_LAST = "It was corrected twice and still does not fit."


class Corrections:
    """Counts each tool's refusals in a row within one run."""

    def __init__(self) -> None:
        self._refusals: Counter[str] = Counter()

    def note(self, name: str, verdict: T | Refused) -> T | Refused:
        """The verdict on a call of this tool. After two corrections a refusal asks to leave the tool alone."""
        if not isinstance(verdict, Refused):
            del self._refusals[name]
            return verdict
        self._refusals[name] += 1
        if self._refusals[name] <= MOST_CORRECTIONS:
            return verdict
        return Refused(verdict.reason, f"{_LAST} Do not call {name[:80]} again for this question; go on without it.")
