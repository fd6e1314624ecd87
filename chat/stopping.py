"""Stop: a flag on the run's row; whoever holds the run sees it within a moment."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.dispatch import receiver
from django.utils import timezone

from chat.models import Run
from chat.queries import run_of, runs_of
from klerai.accounts.models import Person
from klerai.accounts.suspension import person_suspended


def request_stop(person: Person, run_id: UUID) -> Run | None:
    """Ask for the end of the person's run. A run that has ended stays as it is. None when there is no such run."""
    runs_of(person).filter(run_id=run_id, state__in=Run.LIVE, stop_requested_at=None).update(
        stop_requested_at=timezone.now()
    )
    return run_of(person, run_id)


@receiver(person_suspended)
def stop_all(person: Person, **_: Any) -> None:
    """Somebody who was suspended has nothing answered any more."""
    runs_of(person).filter(state__in=Run.LIVE, stop_requested_at=None).update(stop_requested_at=timezone.now())
