"""How often a model may correct a call: a tool it cannot get right must not eat a run's turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from chat.tools.refusals import Refused

T = TypeVar("T")
MOST_CORRECTIONS = 2
_LAST = "It was corrected twice and still does not fit."


class Corrections:
    """Counts the turns in a row in which a tool was called and never rightly, within one run."""

    def __init__(self) -> None:
        self._turns: Counter[str] = Counter()

    def note(self, calls: Sequence[tuple[str, T | Refused]]) -> list[T | Refused]:
        """The verdicts on a turn's calls. After two corrections a refusal asks to leave the tool alone."""
        right = {name for name, verdict in calls if not isinstance(verdict, Refused)}
        for name in {name for name, _ in calls}:
            self._turns[name] = 0 if name in right else self._turns[name] + 1
        return [self._last(name, verdict) if isinstance(verdict, Refused) else verdict for name, verdict in calls]

    def _last(self, name: str, refused: Refused) -> Refused:
        if self._turns[name] <= MOST_CORRECTIONS:
            return refused
        return Refused(refused.reason, f"{_LAST} Do not call {name[:80]} again for this question; go on without it.")
