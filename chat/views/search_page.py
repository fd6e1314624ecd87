"""The search page: the search that conversations use, with every stage laid open."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.views.frame import framed
from chat.views.knowledge_search import problem_of
from chat.views.search_stages import TO_THE_MODEL, drawing_of, rows_of
from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.errors import NoSuchKnowledgeBase
from retrieval.knowledge import DEFAULT_SLUG, knowledge_bases_of
from retrieval.search import search

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Choice:
    slug: str
    name: str


@never_cache
@login_required
@require_safe
async def search_page(request: HttpRequest) -> HttpResponse:
    """`?q=` is searched in `?kb=`, which is everything the person may read unless said otherwise."""
    person = await request.auser()
    assert isinstance(person, Person)
    query, slug = request.GET.get("q", "").strip(), request.GET.get("kb", "") or DEFAULT_SLUG
    choices = await in_database(_choices, person)
    if slug not in {choice.slug for choice in choices}:
        raise Http404
    problem = problem_of(query) if "q" in request.GET else ""
    context: dict[str, Any] = {"query": query[:2_000], "slug": slug, "choices": choices, "problem": problem}
    if query and not problem:
        context |= await _found(person, query, slug)
    return await in_database(framed, request, "knowledge/search.html", context)


async def _found(person: Person, query: str, slug: str) -> dict[str, Any]:
    began = time.monotonic()
    try:
        found = await search(person, query, knowledge_base=slug, limit=SHOWN, rerank=reranker_by_settings())
    except NoSuchKnowledgeBase as error:
        raise Http404 from error
    address = reverse("api_knowledge_search", args=[slug])
    return {
        "milliseconds": 1000 * (time.monotonic() - began),
        "rows": rows_of(query, found.passages),
        "drawing": drawing_of(found.passages),
        "degraded": found.degraded,
        "to_the_model": TO_THE_MODEL,
        "json_url": f"{address}?{urlencode({'q': query, 'limit': SHOWN})}",
        "has_searched": True,
    }


def _choices(person: Person) -> list[Choice]:
    """Everything first, then each one by itself; of two under one slug, the one that is searched under it."""
    named = {DEFAULT_SLUG: Choice(DEFAULT_SLUG, "Everything you can read")}
    for base in knowledge_bases_of(person):
        named.setdefault(base.slug, Choice(base.slug, base.name if base.owner_id else f"{base.name}, shared"))
    return list(named.values())


urlpatterns = [path("search/", search_page, name="search")]
