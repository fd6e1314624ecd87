"""The deadline of a run, which stands still while its person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """`timer` is entered, and nobody else reschedules it."""

    timer: asyncio.Timeout

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What was left when it began is left when it ends."""
        clock = asyncio.get_running_loop().time
        when = self.timer.when()
        left = None if when is None else when - clock()
        self.timer.reschedule(None)
        try:
            yield
        finally:
            if left is not None:
                self.timer.reschedule(clock() + left)
