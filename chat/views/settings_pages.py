"""A person's settings: each field is saved for itself and answers beside itself."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from billing.plans import request_limits_of
from billing.pricing import BASE
from chat.models import GitHubToken
from chat.views.frame import framed, person_of
from klerai.accounts.access import Access
from klerai.accounts.email_change import pending_change
from klerai.accounts.exports import export_of
from klerai.accounts.models import ApiKey, Person
from klerai.accounts.second_factor import second_factor_of
from klerai.accounts.sessions import sessions_of
from klerai.accounts.social_pages import connections_of
from klerai.accounts.time_zones import CHANGES_EVERY, Changed, TooSoon, UnknownZone, change_time_zone


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was made just now, and a line for a terminal that uses it."""

    text: str
    curl: str


@never_cache
@login_required
@require_safe
def settings(request: HttpRequest) -> HttpResponse:
    return settings_page(request)


@login_required
@require_POST
def save_name(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    person.name = request.POST.get("name", "").strip()
    return _saved(request, person, "name", "Your name was saved.")


@login_required
@require_POST
def save_ceiling(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    wanted = request.POST.get("ceiling", "")
    if not (wanted.isdecimal() and len(wanted) < 6):
        return settings_page(request, errors={"ceiling_credits": "Write a whole number of credits."})
    person.ceiling_credits = int(wanted)
    return _saved(request, person, "ceiling_credits", f"A question costs at most {person.ceiling_credits} credits now.")


@login_required
@require_POST
def save_time_zone(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    match change_time_zone(person, request.POST.get("time_zone", ""), now=timezone.now()):
        case Changed(name):
            messages.success(request, f"Your day now starts at midnight in {name}.")
            return redirect("settings")
        case TooSoon(again_at):
            return settings_page(request, errors={"time_zone": _too_soon(again_at, person)})
        case UnknownZone(name):
            return settings_page(
                request, errors={"time_zone": f"There is no time zone “{name[:40]}”. Choose one of the list."}
            )


@login_required
@require_POST
def save_theme(request: HttpRequest) -> HttpResponse:
    """The theme of the profile; the cookie carries it to the pages before the sign-in."""
    person = person_of(request)
    theme = request.POST.get("theme", "")
    if theme not in {"", "light", "dark"}:
        raise Http404
    Person.objects.filter(pk=person.pk).update(theme=theme)
    if request.headers.get("X-Requested-With") == "fetch":
        response = HttpResponse(status=204)
    else:
        response = redirect(_page_before(request))
    response.set_cookie("theme", theme, max_age=365 * 24 * 3600, samesite="Lax", secure=request.is_secure())
    return response


def settings_page(
    request: HttpRequest, *, errors: dict[str, str] | None = None, new_key: NewKey | None = None
) -> HttpResponse:
    person = person_of(request)
    changed_at = person.time_zone_changed_at
    free_at = changed_at + CHANGES_EVERY if changed_at else None
    context = {
        "errors": errors or {},
        "new_key": new_key,
        "keys": ApiKey.objects.filter(person=person, is_active=True),
        "scopes": Access.choices,
        "allowed": request_limits_of(person),
        "zones": sorted(zoneinfo.available_timezones()),
        "zone_again_at": free_at if free_at and free_at > timezone.now() else None,
        "least_ceiling": BASE,
        "email_change": pending_change(person),
        "second_factor": second_factor_of(person),
        "connections": list(connections_of(person)),
        "has_password": person.has_usable_password(),
        "sessions": sessions_of(person, request),
        "export": export_of(person),
        "github": GitHubToken.objects.filter(person=person).first(),
    }
    response = framed(request, "settings/settings.html", context)
    response.status_code = 422 if errors else 200
    return response


def _page_before(request: HttpRequest) -> str:
    """Where the form stood, if that is one of our pages."""
    before = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(before, {request.get_host()}, require_https=request.is_secure())
    return before if is_ours else reverse("settings")


def _saved(request: HttpRequest, person: Person, field: str, words: str) -> HttpResponse:
    try:
        person.clean_fields(exclude=[each.name for each in person._meta.fields if each.name != field])
    except ValidationError as error:
        problem = " ".join(error.messages)
        person.refresh_from_db()
        return settings_page(request, errors={field: problem})
    person.save(update_fields=[field])
    messages.success(request, words)
    return redirect("settings")


def _too_soon(again_at: datetime, person: Person) -> str:
    day = again_at.astimezone(person.zone)
    return f"The time zone can be changed again on {day:%-d %B}; it moves your daily reset."
