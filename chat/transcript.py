"""Items by the IDs a model and a person know them by, on the branch they were said in."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from chat.models import Item, Run
from chat.queries import branch_to, items_of

RECALLED = (Item.Kind.QUERY, Item.Kind.TOOL, Item.Kind.RESPONSE)


@dataclass(frozen=True, slots=True)
class Asked:
    """The question a run answers: its ID, and whether anything of it may be kept."""

    ref: str
    is_temporary: bool


def question_of(run_key: UUID) -> Asked:
    run = Run.objects.only("number", "is_temporary").get(pk=run_key)
    return Asked(run.query_ref, run.is_temporary)


def item_on_branch(run_key: UUID, ref: str) -> Item | None:
    """The item under `ref` that the run may open: of the questions before it, or of its own."""
    asked = [run for run in _branch(run_key) if run.query_ref == ref.partition("-")[0]]
    return next((item for item in _recalled(asked) if item.ref == ref), None)


def refs_on_branch(run_key: UUID) -> list[str]:
    """The IDs the run may open, in the order they came."""
    return [item.ref for item in _recalled(_branch(run_key))]


def _branch(run_key: UUID) -> list[Run]:
    return branch_to(Run.objects.get(pk=run_key))


def _recalled(runs: list[Run]) -> list[Item]:
    items = items_of(runs)
    return [item for run in runs for item in items[run.pk] if item.kind in RECALLED]
