"""A person's API keys in the settings: made, seen once, looked at, revoked."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from chat.views.frame import framed, person_of
from chat.views.settings_pages import NewKey, settings_page
from klerai.accounts.access import Access
from klerai.accounts.keys import create_key

MOST_KEYS = 20
_QUESTION = """-H "Content-Type: application/json" -d '{"message": "What is 17.5 % of 2,480?"}'"""


@never_cache
@login_required
@require_POST
@sensitive_variables("text", "line")
def make_key(request: HttpRequest) -> HttpResponse:
    """The page that answers is the only one that ever shows the key."""
    person = person_of(request)
    scopes = [scope for scope in request.POST.getlist("scope") if scope in Access.values]
    if not scopes:
        return settings_page(request, errors={"key": "Choose what the key may do. No key was made."})
    if person.api_keys.filter(is_active=True).count() >= MOST_KEYS:
        return settings_page(request, errors={"key": f"You have {MOST_KEYS} keys; that is the most. Revoke one first."})
    _, text = create_key(person, request.POST.get("name", "").strip()[:80] or "default", scopes)
    return settings_page(request, new_key=NewKey(text, _curl_line(request, text, scopes)))


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_key(request: HttpRequest, key_id: UUID) -> HttpResponse:
    """POST revokes; before it stands the question, for where no script asks it."""
    key = person_of(request).api_keys.filter(pk=key_id, is_active=True).first()
    if key is None:
        raise Http404
    if request.method != "POST":
        return framed(request, "settings/revoke_key.html", {"key": key})
    key.is_active = False
    key.save(update_fields=["is_active"])
    messages.success(request, f"The key “{key.name}” was revoked. Programs that use it are refused from now on.")
    return redirect("settings")


def _curl_line(request: HttpRequest, text: str, scopes: list[str]) -> str:
    """Something the key may do, to be pasted into a terminal."""
    login = f'-H "Authorization: Bearer {text}"'
    if Access.CHAT in scopes:
        return f"curl -X POST {request.build_absolute_uri('/api/chat')} {login} {_QUESTION}"
    place = "/api/conversations" if Access.READ in scopes else "/api/billing"
    return f"curl {request.build_absolute_uri(place)} {login}"


urlpatterns = [
    path("settings/keys/", make_key, name="make-key"),
    path("settings/keys/<uuid:key_id>/revoke/", revoke_key, name="revoke-key"),
]
