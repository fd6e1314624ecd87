"""The ledger as a page, with filters, and as a file with the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing.credits import LedgerRow, entries_of, owned_after
from billing.records import ledger_csv
from chat.models import Conversation
from chat.movements import Movement, movements_of, tell
from chat.views.frame import framed, person_of
from chat.views.ledger_filter import LedgerFilter
from chat.views.saved_file import saved_as, written
from chat.views.sidebar import title_of
from klerai.accounts.models import Person

ROWS = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A row in words. `url` leads to its receipt or its purchase, `conversation_url` to where the question stands."""

    at: datetime
    words: str
    note: str
    url: str
    conversation: str
    conversation_url: str
    source: str
    change: int
    balance: int


@never_cache
@login_required
@require_safe
def ledger(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    form = LedgerFilter(person, request.GET.dict())
    before = request.GET.get("before", "")
    rows: Sequence[LedgerRow] = ()
    if form.is_valid():
        place = int(before) if before.isdecimal() and before.isascii() and len(before) < 18 else None
        rows = entries_of(person, form.wanted(), before=place, limit=ROWS + 1)
    context = {
        "form": form,
        "ledger": lines_of(person, rows[:ROWS]),
        "older": _older(form, rows),
        "newest": f"?{form.query}" if before else "",
        "zone": person.time_zone,
    }
    return framed(request, "billing/ledger.html", context)


@never_cache
@login_required
@require_safe
def ledger_file(request: HttpRequest) -> HttpResponseBase:
    """Written while it is read, however long it is. Back to the page where the filters make no sense."""
    person = person_of(request)
    form = LedgerFilter(person, request.GET.dict())
    if not form.is_valid():
        return HttpResponseRedirect(f"{reverse('ledger')}?{form.query}")
    name = f"klerai-ledger-{timezone.now().astimezone(person.zone):%Y-%m-%d}.csv"
    lines = ledger_csv(person, form.wanted(), tell=tell)
    return saved_as(name, "text/csv; charset=utf-8", written(lines))


def lines_of(person: Person, rows: Sequence[LedgerRow]) -> list[Line]:
    owned = owned_after(person, rows) if rows else {}
    return [_line(movement, owned[movement.row.number]) for movement in movements_of(person, rows)]


def _line(movement: Movement, balance: int) -> Line:
    row, run = movement.row, movement.run
    conversation = run.conversation if run else None
    at = f"?at={run.number}#{run.query_ref}" if run else ""
    return Line(
        at=row.created_at,
        words=movement.words,
        note=movement.note,
        url=_paper_of(movement),
        conversation=_conversation(conversation, movement) if conversation else "",
        conversation_url=reverse("conversation", args=[conversation.pk]) + at if conversation else "",
        source=_source(row),
        change=row.daily + row.pack,
        balance=balance,
    )


def _conversation(conversation: Conversation, movement: Movement) -> str:
    """Its title, unless that is the question itself."""
    title = title_of(conversation)
    return "its conversation" if movement.words.endswith(title) else title


def _paper_of(movement: Movement) -> str:
    if movement.run is not None:
        return reverse("receipt", args=[movement.run.run_id])
    if movement.order_id is not None:
        return f"{reverse('billing')}?{urlencode({'order': movement.order_id})}"
    return ""


def _source(row: LedgerRow) -> str:
    """“12 daily, 6 packs”, and without figures where there is only one."""
    moved = [(name, abs(amount)) for name, amount in (("daily", row.daily), ("packs", row.pack)) if amount]
    if len(moved) == 1:
        return moved[0][0]
    return ", ".join(f"{amount:,}\N{NO-BREAK SPACE}{name}" for name, amount in moved)


def _older(form: LedgerFilter, rows: Sequence[LedgerRow]) -> str:
    if len(rows) <= ROWS:
        return ""
    before = urlencode({"before": rows[ROWS - 1].number})
    return f"?{form.query}&{before}" if form.query else f"?{before}"


urlpatterns = [
    path("billing/ledger/", ledger, name="ledger"),
    path("billing/ledger.csv", ledger_file, name="ledger_file"),
]
