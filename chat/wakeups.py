"""“Look again”: says that a run has news. Losing one costs a moment, never an event."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

POLL_SECONDS = 0.5


class Wakeups(Protocol):
    async def notify(self, run_keys: Sequence[UUID]) -> None: ...

    async def wait(self, run_key: UUID) -> None:
        """Return when the run may have news, or after a while."""
        ...

    async def aclose(self) -> None: ...


class Polling:
    """One process, or several that look at the database: viewers of other processes' runs look twice a second."""

    async def notify(self, run_keys: Sequence[UUID]) -> None:
        return

    async def wait(self, run_key: UUID) -> None:
        await asyncio.sleep(POLL_SECONDS)

    async def aclose(self) -> None:
        """Nothing is held open."""
