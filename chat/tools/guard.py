"""Stands between a run that has read outside text and what that text might make it do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence

from chat.events import ConfirmationRequired
from chat.tools.base import Tool
from chat.tools.confirmation import (
    Confirmer,
    Decision,
    addresses_given,
    brings_outside_text,
    needs_confirmation,
)
from chat.tools.refusals import Refused
from chat.tools.validator import Valid


class Guard:
    """Knows whether a run is tainted. `given` is what the person themselves wrote in the conversation."""

    def __init__(self, confirmer: Confirmer, *, given: Iterable[str], is_tainted: bool) -> None:
        self.is_tainted = is_tainted
        self._confirmer = confirmer
        self._given = addresses_given(given)

    def note(self, tool: Tool) -> None:
        """A call of this tool has given a result."""
        self.is_tainted = self.is_tainted or brings_outside_text(tool)

    async def ask(
        self, calls: Sequence[tuple[str, Valid | Refused]]
    ) -> AsyncGenerator[tuple[str, ConfirmationRequired | Decision]]:
        """Yield what waits for the person, all at once, then each decision that is no approval."""
        waiting: list[tuple[str, Valid]] = []
        for ref, call in calls:
            if not self.is_tainted or not isinstance(call, Valid):
                continue
            if not needs_confirmation(call.tool, call.arguments, given=self._given):
                continue
            token = await self._confirmer.begin(ref, call.arguments)
            if token is None:
                yield ref, Decision.NOBODY
            else:
                waiting.append((ref, call))
                yield ref, ConfirmationRequired(ref, call.tool.name, dict(call.arguments), token)
        for ref, call in waiting:
            decision = await self._confirmer.decision(ref, call.arguments)
            if decision is not Decision.APPROVED:
                yield ref, decision
