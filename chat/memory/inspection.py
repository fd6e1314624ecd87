"""What a person sees of the memory of a conversation: both tracks in step, what was opened again, what was saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chat.errors import TemporaryGone
from chat.memory.recall import past_run, tokens_of
from chat.memory.summary import ANSWER, QUESTION, RESULT, mechanical
from chat.memory.tokens import count
from chat.memory.working import MOST_LINES, Remembered, fold_line, fold_text, folded, working_messages
from chat.models import Conversation, Item, Run
from chat.profiles import PROFILES
from chat.queries import branch_shown, is_gone, items_of
from chat.sources import without_numbers


@dataclass(frozen=True, slots=True)
class Pair:
    """An item on both tracks. `sent_tokens` is None where it is part of a fold line; `opened_in` names questions.

    `note` says why a model wrote no summary where one should have.
    """

    item: Item
    remembered: Remembered
    sent_tokens: int | None
    opened_in: tuple[str, ...] = ()
    note: str = ""
    citations: Sequence[Mapping[str, Any]] = ()

    @property
    def ref(self) -> str:
        return self.item.ref

    @property
    def sent_id(self) -> str:
        return self.ref if self.remembered.summary is None else f"{self.ref}-sum"

    @property
    def is_same(self) -> bool:
        return self.remembered.summary is None

    @property
    def is_mechanical(self) -> bool:
        """Whether the summary was made without a model: there is none, it has not answered yet, or it failed."""
        sizes = {Item.Kind.QUERY: QUESTION, Item.Kind.RESPONSE: ANSWER}
        size = sizes.get(Item.Kind(self.item.kind), RESULT)
        texts = (self.item.content, without_numbers(self.item.content, self.citations))
        return not self.is_same and self.item.summary in [mechanical(text, size) for text in texts]

    @property
    def text(self) -> str:
        return self.item.content

    @property
    def sent_text(self) -> str:
        return self.remembered.sent


@dataclass(frozen=True, slots=True)
class Fold:
    """The questions that are sent as a line each."""

    lines: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Tokens of history before a question: whole, as sent, and what the model opened again while answering."""

    ref: str
    full: int
    sent: int
    opened: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """`full` and `summarised` are the tracks as they stand; `saved` is net of what the summaries cost."""

    pairs: tuple[Pair, ...]
    fold: Fold | None
    asked: tuple[Asked, ...]
    full: int
    summarised: int
    summaries_cost: int

    @property
    def saved(self) -> int:
        return sum(asked.full - asked.sent - asked.opened for asked in self.asked) - self.summaries_cost

    def find(self, ref: str) -> Pair | None:
        return next((pair for pair in self.pairs if ref in (pair.ref, pair.sent_id)), None)


def inspect(conversation: Conversation) -> Inspection:
    """The memory of the branch shown, as the next question would find it. Raises TemporaryGone."""
    if is_gone(conversation):
        raise TemporaryGone
    branch = branch_shown(conversation)
    items = items_of(branch)
    runs = [run for run in branch if items[run.pk]]  # a full vault lets old runs go
    past = [past_run(items[run.pk]) for run in runs]
    window = PROFILES[conversation.mode].window
    old = folded(len(past), window=window)
    messages = working_messages(past, window=window)
    opened = _opened(items)
    pairs = [
        _pair(item, is_folded=place < old, opened_in=opened.get(item.ref, ()), run=run)
        for place, run in enumerate(runs)
        for item in items[run.pk]
        if item.kind != Item.Kind.PARTIAL
    ]
    lines = tuple(fold_line(run) for run in past[:old][-MOST_LINES:])
    return Inspection(
        pairs=tuple(pairs),
        fold=Fold(lines, count(fold_text(past[:old]))) if lines else None,
        asked=tuple(_asked(run, items[run.pk]) for run in runs if run.receipt is not None),
        full=sum(pair.item.tokens for pair in pairs if not pair.item.reopens),
        summarised=tokens_of(messages),
        summaries_cost=sum(run.summary_tokens for run in runs),
    )


def item_json(pair: Pair, *, track: str = "full") -> dict[str, Any]:
    """An item as the API says it, on one of the tracks."""
    is_full = track == "full"
    return {
        "id": pair.ref if is_full else pair.sent_id,
        "ref": pair.ref,
        "kind": pair.item.kind,
        "tool": pair.item.tool or None,
        "text": pair.text if is_full else pair.sent_text,
        "tokens": pair.item.tokens if is_full else pair.sent_tokens or 0,
        "created_at": _moment(pair.item.created_at),
        "reopened": list(pair.opened_in),
    }


def memory_json(found: Inspection, *, track: str) -> dict[str, Any]:
    return {
        "items": [item_json(pair, track=track) for pair in found.pairs],
        "tokens": {
            "full": found.full,
            "summarised": found.summarised,
            "saved": found.saved,
            "summaries_cost": found.summaries_cost,
        },
    }


def _pair(item: Item, *, is_folded: bool, opened_in: tuple[str, ...], run: Run) -> Pair:
    remembered = Remembered(item.ref, item.content, item.summary, item.tool)
    return Pair(
        item, remembered, None if is_folded else count(remembered.line), opened_in, run.summary_note, run.citations
    )


def _opened(items: Mapping[Any, Sequence[Item]]) -> dict[str, tuple[str, ...]]:
    """For each item that was opened again: the questions in which it was, once each."""
    found: dict[str, tuple[str, ...]] = {}
    for item in (item for several in items.values() for item in several if item.reopens):
        question = item.ref.partition("-")[0]
        if question not in found.get(item.reopens, ()):
            found[item.reopens] = (*found.get(item.reopens, ()), question)
    return found


def _asked(run: Run, items: Sequence[Item]) -> Asked:
    tokens = (run.receipt or {}).get("tokens") or {}
    opened = sum(item.tokens for item in items if item.reopens)
    return Asked(run.query_ref, tokens.get("full_history", 0), tokens.get("sent_history", 0), opened)


def _moment(at: datetime) -> str:
    return at.isoformat()
