"""The one gate to a person's rows: every read takes the person, and what is not theirs does not exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from chat.models import Conversation, Item, Run
from chat.vault import vault
from klerai.accounts.models import Person


def conversations_of(person: Person) -> QuerySet[Conversation]:
    """A person's conversations, newest first, archived ones included."""
    return Conversation.objects.filter(person=person).order_by("-updated_at", "-id")


def conversation_of(person: Person, conversation_id: UUID) -> Conversation | None:
    return conversations_of(person).filter(pk=conversation_id).first()


def runs_of(person: Person) -> QuerySet[Run]:
    return Run.objects.filter(person=person)


def run_of(person: Person, run_id: UUID) -> Run | None:
    """The person's run by the id their client gave it."""
    return runs_of(person).select_related("conversation").filter(run_id=run_id).first()


def live_or_same(person: Person, run_id: UUID) -> list[Run]:
    """What decides whether a question is new and whether there is room for it, oldest first: one query for both.

    Plain SQL, because it stands before every question and the ORM takes longer to write it than PostgreSQL to run it.
    """
    wanted = "SELECT * FROM chat_run WHERE person_id = %s AND (run_id = %s OR state IN ('queued', 'running'))"
    return list(Run.objects.raw(f"{wanted} ORDER BY created_at", [person.pk, run_id]))


_BRANCH = """
WITH RECURSIVE branch AS (
    SELECT * FROM chat_run WHERE id = %(tip)s
    UNION ALL
    SELECT parent.* FROM chat_run parent JOIN branch ON parent.id = branch.parent_id WHERE parent.depth > %(above)s
)
SELECT * FROM branch ORDER BY depth
"""


def branch_to(tip: Run | None, *, last: int | None = None) -> list[Run]:
    """The runs from the first question to `tip`, oldest first, or the `last` of them.

    Only these are read, however long the conversation is and however many versions it has.
    """
    if tip is None:
        return []
    above = 0 if last is None else tip.depth - last
    return list(Run.objects.raw(_BRANCH, {"tip": tip.pk, "above": above}))


_NEWEST_END = """
WITH RECURSIVE walk AS (
    SELECT id, depth FROM chat_run WHERE id = %s
    UNION ALL
    SELECT child.id, child.depth FROM walk, LATERAL (
        SELECT id, depth FROM chat_run WHERE parent_id = walk.id ORDER BY number DESC LIMIT 1) child
)
SELECT run.* FROM chat_run run WHERE id = (SELECT id FROM walk ORDER BY depth DESC LIMIT 1)
"""


def newest_end(run: Run) -> Run:
    """The end of the branch that goes through `run` and takes the newest version after it."""
    (end,) = Run.objects.raw(_NEWEST_END, [run.pk])
    return end


def branch_shown(conversation: Conversation) -> list[Run]:
    """The branch the person saw last, oldest run first."""
    return branch_to(conversation.tip)


def siblings_in(conversation: Conversation, *, of: Sequence[Run] | None = None) -> dict[str, list[str]]:
    """For each query that has versions, or each `of` these: those that follow the same parent, itself included."""
    runs = conversation.runs.order_by("number")
    if of is not None:
        follows = Q(parent__in=[run.parent_id for run in of if run.parent_id])
        runs = runs.filter(follows | Q(parent=None) if any(run.parent_id is None for run in of) else follows)
    by_parent: defaultdict[UUID | None, list[str]] = defaultdict(list)
    for number, parent in runs.values_list("number", "parent_id"):
        by_parent[parent].append(f"q{number}")
    return {ref: versions for versions in by_parent.values() if len(versions) > 1 for ref in versions}


def items_of(runs: Iterable[Run]) -> dict[UUID, list[Item]]:
    """The items of each run, in the order they came: query, tools, response."""
    found: defaultdict[UUID, list[Item]] = defaultdict(list)
    kept: list[Run] = []
    for run in runs:
        if run.is_temporary:
            found.update(vault().items([run.pk]))
        else:
            kept.append(run)
    for item in Item.objects.filter(run__in=kept).order_by("run", "position") if kept else ():
        found[item.run_id].append(item)
    return found


def questions_of(runs: Iterable[Run], *, characters: int) -> dict[UUID, str]:
    """How the question of each run begins. Those of temporary ones are written nowhere and not among them."""
    kept = [run.pk for run in runs if not run.is_temporary]
    asked = Item.objects.filter(run__in=kept, kind=Item.Kind.QUERY).annotate(begin=Left("content", characters))
    return dict(asked.values_list("run_id", "begin"))


def citations_of(run: Run) -> list[dict[str, Any]]:
    """What the answer of a run cites; of a temporary one as its process remembers it."""
    if not run.is_temporary:
        return list(run.citations)
    events = vault().events(run.pk) or []
    return list(events[-1].data.get("citations", [])) if events else []


def confidence_of(run: Run) -> float | None:
    """How sure the model was of its answer, where its mode asks for that."""
    if not run.is_temporary:
        return run.confidence
    events = vault().events(run.pk) or []
    return events[-1].data.get("confidence") if events else None


def is_gone(conversation: Conversation) -> bool:
    """Whether the conversation was temporary and its words are not in this process."""
    tip = conversation.tip_id
    return conversation.is_temporary and tip is not None and not vault().holds(tip)
