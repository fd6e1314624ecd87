"""The receipt of one question, as a page with an address of its own."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.queries import run_of
from chat.views.frame import framed, person_of
from chat.views.sidebar import title_of
from chat.views.thread import thread_of


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


urlpatterns = [path("billing/receipts/<uuid:run_id>/", receipt, name="receipt")]
