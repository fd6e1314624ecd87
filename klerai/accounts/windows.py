"""The stretch of time over which requests are counted together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Window:
    """The requests of one subject, from a moment on, for so many seconds."""

    subject: UUID
    began_at: datetime
    seconds: int
