"""The words of temporary conversations: kept by the process that answers them, and gone with it.

Rows hold their ids, times, states and money; what was said and found is here and nowhere else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING
from uuid import UUID

from django.apps import apps

from chat.events import Logged

if TYPE_CHECKING:
    from chat.models import Item

MOST_RUNS = 2_000


@dataclass(slots=True)
class _Words:
    items: list[Item] = field(default_factory=list)
    events: list[Logged] = field(default_factory=list)


class Vault:
    """Safe to use from every thread. The runs used longest ago leave first when it is full."""

    def __init__(self, *, most_runs: int = MOST_RUNS) -> None:
        self._most_runs = most_runs
        self._runs: OrderedDict[UUID, _Words] = OrderedDict()
        self._lock = Lock()

    def begin(self, query: Item) -> None:
        """Take in a run with its question."""
        with self._lock:
            self._runs[query.run_id] = _Words([query])
            while len(self._runs) > self._most_runs:
                self._runs.popitem(last=False)

    def note(self, run_key: UUID, events: Sequence[Logged], items: Iterable[Item] = ()) -> None:
        """Add what happened and what was said or found, once, however often it is told.

        A run that has left is not taken in again.
        """
        with self._lock:
            words = self._runs.get(run_key)
            last = words.events[-1].seq if words and words.events else 0
            if words is not None and events and events[-1].seq > last:
                words.events.extend(events)
                words.items.extend(items)

    def holds(self, run_key: UUID) -> bool:
        return run_key in self._runs

    def items(self, run_keys: Iterable[UUID]) -> dict[UUID, list[Item]]:
        """What is held of these runs, in the order it came."""
        with self._lock:
            found = {key: self._runs[key] for key in run_keys if key in self._runs}
            for key in found:
                self._runs.move_to_end(key)
            return {key: sorted(words.items, key=lambda item: item.position) for key, words in found.items()}

    def events(self, run_key: UUID, *, after: int = 0) -> list[Logged] | None:
        """The events behind `after`; None when this process does not hold the run."""
        with self._lock:
            words = self._runs.get(run_key)
            return None if words is None else [event for event in words.events if event.seq > after]

    def forget(self, run_keys: Iterable[UUID]) -> None:
        with self._lock:
            for key in run_keys:
                self._runs.pop(key, None)


def vault() -> Vault:
    """The one of this process."""
    found: Vault = apps.get_app_config("chat").vault  # type: ignore[attr-defined]  # made when the apps are ready
    return found
