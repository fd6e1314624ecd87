"""The pages of the chat: the front page, a conversation, and the pieces of it that are fetched again."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing.plans import free_terms
from billing.pricing import BASE, quote
from chat.models import Conversation, Run
from chat.profiles import DEFAULT_MODE, PROFILES, missing_tools
from chat.queries import conversation_of, is_gone, run_of
from chat.quotes import least_of
from chat.tools.registry import discover
from chat.views.frame import framed, gone_page, person_of
from chat.views.pricing_page import prices_charged
from chat.views.purse import PurseView
from chat.views.sidebar import sidebar_of, title_of
from chat.views.starters import is_offline, starters
from chat.views.thread import SHOWN_RUNS, branch_through, thread_of
from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class ModeChoice:
    name: str
    title: str
    description: str
    least: int
    is_available: bool
    why: str


@dataclass(frozen=True, slots=True)
class QuoteView:
    """The range a question can cost, in the words that stand beside Send."""

    at_least: int
    at_most: int
    words: str


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """A new conversation, or for strangers what this is."""
    if isinstance(request.user, Person):
        return _conversation_page(request, None, [])
    plan = free_terms()
    context = {"plan": plan, "questions": plan.daily_credits // BASE, "prices": prices_charged()}
    return render(request, "landing.html", {**context, "signup": settings.SIGNUP})


@never_cache
@login_required
@require_safe
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The end of the branch shown last, or with `?at=3` of the newest one through q3; `?last=60` shows more of it."""
    found = conversation_of(person_of(request), conversation_id)
    if found is None:
        raise Http404
    if is_gone(found):
        return gone_page(request)
    last = max(SHOWN_RUNS, _number(request, "last") or 0)
    return _conversation_page(request, found, branch_through(found, _number(request, "at"), last=last))


@never_cache
@login_required
@require_safe
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One question with its answer as history shows it: what a page fetches when a run has ended."""
    found = run_of(person_of(request), run_id)
    if found is None:
        raise Http404
    (view,) = thread_of(found.conversation, [found])
    return render(request, "chat/run.html", {"run": view})


@never_cache
@login_required
@require_safe
def sidebar(request: HttpRequest) -> HttpResponse:
    """The conversations and what is left, as they are now."""
    try:
        current = UUID(request.GET.get("current", ""))
    except ValueError:
        current = None
    return render(request, "sidebar.html", {"sidebar": sidebar_of(person_of(request), current=current)})


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 9 else None


def _conversation_page(request: HttpRequest, shown: Conversation | None, branch: list[Run]) -> HttpResponse:
    person = person_of(request)
    beside = sidebar_of(person, current=shown.pk if shown else None)
    modes = _modes()
    wanted = shown.mode if shown else DEFAULT_MODE
    mode = next((mode for mode in modes if mode.name == wanted and mode.is_available), modes[0])
    context = {
        "title": title_of(shown) if shown else "New conversation",
        "conversation_id": shown.pk if shown else None,
        "is_temporary": shown is not None and shown.is_temporary,
        "keeps_nothing": settings.CONVERSATION_STORAGE == "memory",
        "is_pinned": shown is not None and shown.is_pinned,
        "runs": thread_of(shown, branch) if shown else [],
        "earlier": branch[0].depth - 1 if branch else 0,
        "earlier_url": _earlier_url(request, branch),
        "is_running": any(run.is_live for run in branch),
        "modes": modes,
        "mode": mode,
        "quote": _quote(person, beside.purse, mode),
        "purse": beside.purse,
        "least_ceiling": BASE,
        "starters": starters(),
        "is_offline": is_offline(),
    }
    return framed(request, "chat/conversation.html", context, sidebar=beside)


def _earlier_url(request: HttpRequest, branch: list[Run]) -> str:
    """The same page with more of the branch, at the question that is the first one now."""
    if not branch:
        return ""
    more = request.GET.copy()
    more["last"] = str(len(branch) + SHOWN_RUNS)
    return f"?{more.urlencode()}#{branch[0].query_ref}"


def _modes() -> list[ModeChoice]:
    registered = frozenset(discover())
    choices = []
    for profile in PROFILES.values():
        missing = missing_tools(profile, registered)
        why = f"needs {' and '.join(missing)}, not here yet" if missing else ""
        choices.append(
            ModeChoice(profile.name, profile.title, profile.description, least_of(profile), not missing, why)
        )
    return choices


def _quote(person: Person, purse: PurseView, mode: ModeChoice) -> QuoteView:
    most = quote(person).at_most
    words = f"from {mode.least}, at most {most} credits"
    if purse.left < mode.least:
        words = f"from {mode.least}; you have {purse.left}"
    elif most < mode.least:
        words = f"from {mode.least}; your ceiling is {most}"
    return QuoteView(mode.least, most, words)
