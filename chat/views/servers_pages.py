"""What people do with servers: try one from the setup page, and bring or remove a GitHub token of their own."""

from __future__ import annotations

from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from chat.mcp.connection import State
from chat.mcp.tokens import NotAToken, remove_token, save_token
from chat.views.frame import person_of
from chat.views.servers import check_server, close_own_session
from chat.views.settings_pages import settings_page


@login_required
@require_POST
@sensitive_post_parameters("token")
@sensitive_variables()
def save_github_token(request: HttpRequest) -> HttpResponse:
    try:
        save_token(person_of(request), request.POST.get("token", ""))
    except NotAToken as error:
        return settings_page(request, errors={"github": str(error)})
    close_own_session(request)
    messages.success(request, "Your GitHub token was saved. Your questions use it from now on, and nobody else's do.")
    return redirect("settings")


@login_required
@require_POST
def remove_github_token(request: HttpRequest) -> HttpResponse:
    if not remove_token(person_of(request)):
        raise Http404
    close_own_session(request)
    messages.success(request, "Your GitHub token was removed, and the session with it was closed.")
    return redirect("settings")


@login_required
@require_POST
def test_server(request: HttpRequest, name: str) -> HttpResponse:
    if not admin.site.has_permission(request):
        raise Http404
    status = check_server(request, name)
    if status is None:
        raise Http404
    if status.state is State.READY and not status.error:
        messages.success(request, f"{name} answers, with {status.tools} tool{'' if status.tools == 1 else 's'}.")
    else:
        messages.error(request, f"{name} does not answer. {status.error or 'It is still starting.'}")
    return redirect("setup")


urlpatterns = [
    path("settings/github/", save_github_token, name="save-github-token"),
    path("settings/github/remove/", remove_github_token, name="remove-github-token"),
    path("setup/servers/<slug:name>/test/", test_server, name="test-server"),
]
