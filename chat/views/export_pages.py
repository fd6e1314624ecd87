"""Taking one's things along: the export of everything, and of one conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from procrastinate.contrib.django import app

from chat.export.conversations import conversation_as_json, conversation_as_markdown
from chat.models import Conversation
from chat.queries import conversation_of
from chat.views.frame import person_of
from chat.views.saved_file import saved_as, written
from klerai.accounts import exports
from klerai.accounts.errors import ExportUnderWay
from klerai.database import in_database

BEGUN = "Your export is being made. A mail tells you when it is ready."
UNDER_WAY = "Your export is being made already; there is one at a time."
_FORMS: dict[str, tuple[str, Callable[[Conversation], Iterator[str]]]] = {
    "json": ("application/json", conversation_as_json),
    "md": ("text/markdown; charset=utf-8", conversation_as_markdown),
}


@login_required
@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    try:
        with transaction.atomic():
            export = exports.ask_for_export(person_of(request))
            app.configure_task("make_export", queue="exports").defer(export_id=str(export.pk))
    except ExportUnderWay:
        messages.info(request, UNDER_WAY)
    else:
        messages.success(request, BEGUN)
    return redirect(f"{reverse('settings')}#export")


@never_cache
@login_required
@require_safe
def progress(request: HttpRequest) -> HttpResponse:
    """How far it is, for the page that shows it to look again."""
    return render(request, "settings/export.html", {"export": exports.export_of(person_of(request))})


@never_cache
@login_required
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth is untyped
@require_safe
def download(request: HttpRequest, export_id: UUID) -> StreamingHttpResponse:
    export = exports.ready_export(person_of(request), export_id)
    if export is None:
        raise Http404
    name = f"klerai-{export.asked_at:%Y-%m-%d}.zip"
    response = saved_as(name, "application/zip", _pieces(export.pk))
    response["Content-Length"] = str(export.bytes)
    return response


@never_cache
@login_required
@require_safe
def conversation(request: HttpRequest, conversation_id: UUID, form: str) -> StreamingHttpResponse:
    found = conversation_of(person_of(request), conversation_id)
    if found is None or form not in _FORMS:
        raise Http404
    media_type, write = _FORMS[form]
    name = f"{slugify(found.title)[:60] or 'conversation'}.{form}"
    return saved_as(name, media_type, written(write(found)))


async def _pieces(export_id: UUID) -> AsyncGenerator[bytes]:
    position = 0
    while (piece := await in_database(exports.export_piece, export_id, position)) is not None:
        yield piece
        position += 1


urlpatterns = [
    path("settings/export/", ask, name="export"),
    path("settings/export/progress/", progress, name="export-progress"),
    path("settings/export/<uuid:export_id>/", download, name="export-download"),
    path("chat/<uuid:conversation_id>/export.<slug:form>", conversation, name="conversation-export"),
]
