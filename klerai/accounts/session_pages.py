"""Signing other sessions out, from the settings."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from klerai.accounts.models import Person
from klerai.accounts.sessions import end_other_sessions, end_session


@login_required
@require_POST
def sign_out_one(request: HttpRequest, session_id: int) -> HttpResponse:
    assert isinstance(request.user, Person)
    if not end_session(request.user, session_id, request):
        raise Http404
    messages.success(request, "That device is signed out.")
    return redirect("settings")


@login_required
@require_POST
def sign_out_others(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, Person)
    count = end_other_sessions(request.user, request)
    said = {0: "You were signed in nowhere else.", 1: "One other device is signed out."}
    messages.success(request, said.get(count, f"{count} other devices are signed out."))
    return redirect("settings")
