"""The rows of a person's ledger in words: what each was, and which question or purchase it came of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from billing import packs
from billing.credits import LedgerRow
from billing.records import Told
from chat.models import Run
from chat.queries import questions_of, runs_of
from klerai.accounts.models import Person

_TITLE_CHARACTERS = 80
_DELETED, _TEMPORARY = "a question whose conversation was deleted", "a question of a temporary conversation"


@dataclass(frozen=True, slots=True)
class Movement:
    """A row with what it says. `run` is None also where the conversation of its question was deleted."""

    row: LedgerRow
    words: str
    note: str
    run: Run | None
    order_id: UUID | None


def movements_of(person: Person, rows: Sequence[LedgerRow]) -> list[Movement]:
    keys = {row.run_id for row in rows if row.run_id}
    runs = {run.pk: run for run in runs_of(person).select_related("conversation").filter(pk__in=keys)}
    asked = questions_of(runs.values(), characters=_TITLE_CHARACTERS + 1)
    orders = packs.orders_behind(person, rows)
    found = []
    for row in rows:
        run = runs.get(row.run_id) if row.run_id else None
        words = _of_question(row, _question(run, asked)) if row.run_id else row.reason or row.kind.capitalize()
        found.append(Movement(row, words, _note(row), run, orders.get(row.id)))
    return found


def tell(person: Person, rows: Sequence[LedgerRow]) -> Iterator[Told]:
    """The same for a file."""
    for movement in movements_of(person, rows):
        words = f"{movement.words} ({movement.note})" if movement.note else movement.words
        yield Told(words, movement.run.run_id if movement.run else None)


def _question(run: Run | None, asked: dict[UUID, str]) -> str:
    if run is None:
        return _DELETED
    if run.is_temporary:
        return _TEMPORARY
    question = " ".join(asked.get(run.pk, "").split())
    return question if len(question) <= _TITLE_CHARACTERS else f"{question[: _TITLE_CHARACTERS - 1]}…"


def _of_question(row: LedgerRow, question: str) -> str:
    match row.kind:
        case "hold":
            return f"Set aside for: {question}"
        case "release":
            return f"Not charged: {question}"
        case _:
            return question.capitalize() if question in (_DELETED, _TEMPORARY) else question


def _note(row: LedgerRow) -> str:
    if row.kind in ("settle", "release") and row.expired:
        return f"{row.expired:,} of it came back after the day it was for, and expired"
    if row.kind == "hold":
        return f"{row.held:,} on hold"
    return ""
