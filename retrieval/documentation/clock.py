"""How long a look-up may still take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Clock:
    """`ends_at` is on the monotonic clock."""

    ends_at: float

    @classmethod
    def of(cls, seconds: float) -> Self:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds; never below zero."""
        return max(0.0, self.ends_at - time.monotonic())
