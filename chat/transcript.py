"""Items by the IDs a model and a person know them by, on the branch they were said in."""

from __future__ import annotations

from uuid import UUID

from chat.models import Item, Run
from chat.queries import branch_to, items_of

RECALLED = (Item.Kind.QUERY, Item.Kind.TOOL, Item.Kind.RESPONSE)


def item_on_branch(run_key: UUID, ref: str) -> Item | None:
    """The item under `ref` that the run may open: of the questions before it, or of its own."""
    return _on_branch(run_key).get(ref)


def refs_on_branch(run_key: UUID) -> list[str]:
    """The IDs the run may open, in the order they came."""
    return list(_on_branch(run_key))


def _on_branch(run_key: UUID) -> dict[str, Item]:
    branch = branch_to(Run.objects.get(pk=run_key))
    items = items_of(branch)
    return {item.ref: item for run in branch for item in items[run.pk] if item.kind in RECALLED}
