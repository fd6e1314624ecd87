"""What is left and what was spent: the balance with its ledger, and one receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing.credits import LedgerRow, entries_of
from billing.plans import plan_of
from billing.pricing import BASE
from chat.models import Item, Run
from chat.queries import items_of, run_of, runs_of
from chat.views.frame import framed, person_of
from chat.views.sidebar import purse_of, title_of
from chat.views.thread import thread_of
from klerai.accounts.models import Person

LEDGER_ROWS = 20
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One entry in words. `url` leads to the receipt of its question."""

    at: datetime
    words: str
    url: str
    source: str
    change: int
    balance: int


@never_cache
@login_required
@require_safe
def billing(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    before = request.GET.get("before", "")
    rows = entries_of(
        person,
        before=int(before) if before.isdecimal() and len(before) < 18 else None,
        limit=LEDGER_ROWS + 1,
        kinds=("grant", "settle", "release", "expire", "revoke"),
    )
    context = {
        "purse": (purse := purse_of(person)),
        "questions_left": purse.left // BASE,
        "plan": plan_of(person),
        "ceiling": person.ceiling_credits,
        "ledger": list(_ledger(person, rows[:LEDGER_ROWS])),
        "older": rows[LEDGER_ROWS - 1].number if len(rows) > LEDGER_ROWS else None,
        "is_first_page": not before,
    }
    return framed(request, "billing/overview.html", context)


@never_cache
@login_required
@require_safe
def receipt(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = run_of(person_of(request), run_id)
    if found is None:
        raise Http404
    (view,) = thread_of(found.conversation, [found])
    context = {"run": view, "mode": found.mode, "asked_at": found.created_at, "title": title_of(found.conversation)}
    context["memory_url"] = reverse("memory", args=[found.conversation_id])
    context["conversation_url"] = reverse("conversation", args=[found.conversation_id])
    return framed(request, "billing/receipt.html", context, current=found.conversation_id)


def _ledger(person: Person, rows: Iterable[LedgerRow]) -> Iterable[LedgerLine]:
    rows = list(rows)
    runs = {run.pk: run for run in runs_of(person).filter(pk__in=[row.run_id for row in rows if row.run_id])}
    asked = {
        run_key: item.content
        for run_key, items in items_of(runs.values()).items()
        for item in items
        if item.kind == Item.Kind.QUERY
    }
    return (_line(row, runs, asked) for row in rows)


def _line(row: LedgerRow, runs: Mapping[UUID, Run], asked: Mapping[UUID, str]) -> LedgerLine:
    run = runs.get(row.run_id) if row.run_id else None
    return LedgerLine(
        at=row.created_at,
        words=_words(row, asked.get(run.pk, "") if run else ""),
        url=reverse("receipt", args=[run.run_id]) if run else "",
        source=" and ".join(name for name, moved in (("daily", row.daily), ("packs", row.pack)) if moved),
        change=row.daily + row.pack,
        balance=row.balance_after,
    )


def _words(row: LedgerRow, question: str) -> str:
    short = question if len(question) <= _TITLE_CHARACTERS else f"{question[: _TITLE_CHARACTERS - 1]}…"
    match row.kind:
        case "settle":
            return short or "A question"
        case "release":
            return f"Not charged: {short}" if short else "A question, not charged"
        case "expire":
            return f"Unused credits of {row.day:%-d %B}" if row.day else "Unused credits"
        case "grant" if row.day:
            return f"Credits for {row.day:%-d %B}"
        case _:
            return row.reason or row.kind.capitalize()
