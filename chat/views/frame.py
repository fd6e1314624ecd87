"""The frame around every page of somebody signed in."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from billing.shop import banner_for
from chat.views.sidebar import Sidebar, sidebar_of
from klerai.accounts.models import Person


def person_of(request: HttpRequest) -> Person:
    """Who is signed in; only for views that are behind a login."""
    assert isinstance(request.user, Person)
    return request.user


def gone_page(request: HttpRequest) -> HttpResponse:
    """For a temporary conversation whose words no process has any more."""
    response = framed(request, "chat/gone.html", {})
    response.status_code = 410
    return response


def framed(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    current: UUID | None = None,
    sidebar: Sidebar | None = None,
) -> HttpResponse:
    """A page with its sidebar, and with what has to be said on every one of them while a payment is open.

    `current` is the conversation that is shown; `sidebar` spares reading it twice.
    """
    person = person_of(request)
    beside = sidebar or sidebar_of(person, current=current)
    return render(request, template, {**context, "sidebar": beside, "past_due": banner_for(person)})
