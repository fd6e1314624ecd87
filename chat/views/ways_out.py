"""What the chat shows when credits do not suffice: which limit it is, when it opens again, and what can be done."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing import credits, shop
from billing.plans import plan_of
from billing.pricing import BASE
from chat.shortage import what_binds, what_is_short
from chat.views.frame import person_of


@never_cache
@login_required
@require_safe
def ways_out(request: HttpRequest) -> HttpResponse:
    """A piece of a page, fetched after a question was refused. It says how things stand now."""
    person = person_of(request)
    shortfall = credits.shortfall_of(person, required=BASE)
    mine = plan_of(person)
    more = [offer for offer in shop.plans_offered() if offer.daily_credits > mine.daily_credits]
    context = {
        "is_short": shortfall.balance < shortfall.required,
        "balance": shortfall.balance,
        "heading": what_is_short(shortfall),
        "words": what_binds(person, shortfall),
        "resets_at": shortfall.resets_at,
        "packs": shop.packs_offered() if shop.is_open() else (),
        "plans": more if shop.is_open() else [],
        "is_rehearsal": shop.is_test(),
    }
    return render(request, "billing/ways_out.html", context)


urlpatterns = [path("billing/ways-out/", ways_out, name="ways-out")]
