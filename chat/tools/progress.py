"""How far a call is, told while it runs; a tool that says it too often is heard now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

from chat.events import StatusUpdate
from chat.tools.showing import clean

LEAST_SECONDS_BETWEEN = 0.25
MOST_TOLD = 60
MOST_CHARACTERS = 200


class Telling:
    """Called with a few words, it tells them to the person beside the call's label."""

    def __init__(self, label: str, tell: Callable[[StatusUpdate], None]) -> None:
        self._label = label
        self._tell = tell
        self._told = 0
        self._not_before = 0.0

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if now < self._not_before or self._told >= MOST_TOLD:
            return
        self._told += 1
        self._not_before = now + LEAST_SECONDS_BETWEEN
        said = " ".join(clean(words).split())[:MOST_CHARACTERS]
        self._tell(StatusUpdate("tools", f"{self._label[:100]}: {said}"))
