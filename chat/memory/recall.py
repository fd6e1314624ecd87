"""Reads the past of a run from its rows and says what of it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from chat.memory.tokens import count
from chat.memory.working import PastRun, Remembered, folded, reach, working_messages
from chat.messages import AssistantMessage, Message, UserMessage
from chat.models import Item, Run
from chat.profiles import Profile
from chat.queries import branch_to, items_of

_ARGUMENTS_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Recalled:
    """The working messages of the past, and how long both tracks are in tokens.

    `asked` is what the person wrote in it, word for word; `is_tainted` says that it may hold outside text.
    """

    messages: tuple[Message, ...] = ()
    full_tokens: int = 0
    sent_tokens: int = 0
    asked: tuple[str, ...] = ()
    is_tainted: bool = False


def recall(run: Run, profile: Profile) -> Recalled:
    """What the model is sent of the branch that the run's question follows."""
    if run.parent is None:
        return Recalled()
    past = branch_to(run.parent, last=reach(profile.window))
    before = run.parent.depth - len(past)
    depth, window = run.parent.depth, profile.window
    if folded(depth, window=window) > folded(depth - 1, window=window):
        let_late_summaries_in(past)
    items = items_of(past)
    held = [past_run(items[earlier.pk]) for earlier in past if items[earlier.pk]]  # a full vault lets old runs go
    messages = working_messages(held, window=window, before=before + len(past) - len(held))
    said = [item for several in items.values() for item in several]
    return Recalled(
        tuple(messages),
        _full_tokens(past, items),
        tokens_of(messages),
        asked=tuple(item.content for item in said if item.kind == Item.Kind.QUERY),
        is_tainted=run.parent.is_tainted,
    )


def _full_tokens(past: Sequence[Run], items: Mapping[UUID, Sequence[Item]]) -> int:
    """The full track so far: what the newest receipt says came before its run, and what was said since."""
    full = 0
    for earlier in reversed(past):
        full += sum(item.tokens for item in items[earlier.pk] if _is_kept(item))
        before: int = ((earlier.receipt or {}).get("tokens") or {}).get("full_history", 0)
        if before:
            return full + before
    return full


def _is_kept(item: Item) -> bool:
    """Whether the full track holds it: not the words without an answer, and not what was only opened again."""
    return item.kind != Item.Kind.PARTIAL and not item.reopens


def let_late_summaries_in(past: Sequence[Run]) -> None:
    """At a fold the prompt's beginning changes anyway: now summaries that came too late take their places."""
    late = Item.objects.filter(run__in=past, late_summary__isnull=False)
    late.update(summary=F("late_summary"), late_summary=None)


def tokens_of(messages: Sequence[Message]) -> int:
    """The tokens of working messages, of which all are words of the person or the model."""
    return sum(count(message.text) for message in messages if isinstance(message, UserMessage | AssistantMessage))


def summary_of(run: Run) -> str:
    """The answer as it will be sent with later questions; a short one is its own summary."""
    item = next((item for item in items_of([run])[run.pk] if item.kind == Item.Kind.RESPONSE), None)
    return "" if item is None else _remembered(item).sent


def past_run(items: Sequence[Item]) -> PastRun:
    """The rows of one run as memory has them. The words of a run without an answer are not remembered."""
    query = next(item for item in items if item.kind == Item.Kind.QUERY)
    tools = tuple(_remembered(item) for item in items if item.kind == Item.Kind.TOOL)
    response = next((item for item in items if item.kind == Item.Kind.RESPONSE), None)
    return PastRun(_remembered(query), tools, _remembered(response) if response else None)


def _remembered(item: Item) -> Remembered:
    return Remembered(item.ref, item.content, item.summary, _call(item) if item.tool else "")


def _call(item: Item) -> str:
    """The tool with its arguments: what was asked of it is as telling as what it gave."""
    arguments = (item.card or {}).get("arguments") or {}
    written = ", ".join(f"{name}={value}" for name, value in arguments.items())
    if len(written) > _ARGUMENTS_CHARACTERS:
        written = f"{written[:_ARGUMENTS_CHARACTERS]}…"
    return f"{item.tool}({written})"
