"""The page on which a person deletes their account."""

from __future__ import annotations

from allauth.account.decorators import reauthentication_required
from allauth.core import ratelimit
from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.errors import NothingSold, StripeRefused, StripeUnavailable
from chat.departure import leave, losses_of
from chat.errors import StaffStay
from chat.views.frame import framed, person_of
from klerai.accounts.mail_code import is_code, send_code
from klerai.accounts.models import Person
from klerai.accounts.second_factor import has_second_factor

NOTHING_DELETED = "Nothing was deleted."
WRONG_PASSWORD = f"That is not your password. {NOTHING_DELETED}"
WRONG_CODE = f"That is not the code that was sent last, or it is too old. {NOTHING_DELETED}"
NO_ANSWER = (
    "Your subscription could not be cancelled, because Stripe does not answer. "
    f"{NOTHING_DELETED} Try again in some minutes."
)
NOT_CANCELLED = (
    f"Your subscription could not be cancelled here. {NOTHING_DELETED} Cancel it on the page of your plan, or write "
    "to the people who run this."
)
STAFF = (
    "You are one of the people who run this server, and the record of what you did hangs on your account. "
    f"Have another one take that role from you first. {NOTHING_DELETED}"
)


def _has_second_factor(request: HttpRequest) -> bool:
    return has_second_factor(person_of(request))


@never_cache
@sensitive_post_parameters("password", "code")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete_account(request: HttpRequest) -> HttpResponse:
    """Who has a second factor gives a code of it first, like everywhere."""
    try:
        answer: HttpResponse = _confirmed(request)
    except ReauthenticationRequired:
        if request.method == "POST":  # else the form would wait in the session, with the password in it
            return redirect("delete-account")
        raise
    return answer


@reauthentication_required(enabled=_has_second_factor)  # type: ignore[untyped-decorator]  # allauth is untyped
def _confirmed(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    if request.method != "POST":
        return _page(request, person)
    refused: HttpResponse | None = ratelimit.consume_or_429(request, action="reauthenticate", user=person)
    if refused:
        return refused
    problem = _unconfirmed(request, person) or _left(person)
    if problem:
        return _page(request, person, problem=problem)
    logout(request)
    return redirect("account-deleted")


@login_required
@require_POST
def mail_code(request: HttpRequest) -> HttpResponse:
    """For somebody without a password."""
    person = person_of(request)
    refused: HttpResponse | None = ratelimit.consume_or_429(request, action="manage_email", user=person)
    if refused:
        return refused
    send_code(request, person)
    messages.success(request, f"A code is on its way to {person.email}.")
    return redirect("delete-account")


@never_cache
@require_safe
def account_deleted(request: HttpRequest) -> HttpResponse:
    return render(request, "settings/deleted.html")


def _unconfirmed(request: HttpRequest, person: Person) -> str:
    if person.has_usable_password():
        is_right = person.check_password(request.POST.get("password", ""))
        return "" if is_right else WRONG_PASSWORD
    return "" if is_code(request, person, request.POST.get("code", "")) else WRONG_CODE


def _left(person: Person) -> str:
    """Why the person is still there; empty when they are gone."""
    try:
        leave(person)
    except StripeUnavailable:
        return NO_ANSWER
    except (StripeRefused, NothingSold):
        return NOT_CANCELLED
    except StaffStay:
        return STAFF
    return ""


def _page(request: HttpRequest, person: Person, *, problem: str = "") -> HttpResponse:
    context = {
        "losses": losses_of(person),
        "problem": problem,
        "has_password": person.has_usable_password(),
        "is_staff": person.is_staff,
    }
    response = framed(request, "settings/delete.html", context)
    response.status_code = 422 if problem else 200
    return response


urlpatterns = [
    path("settings/delete/", delete_account, name="delete-account"),
    path("settings/delete/code/", mail_code, name="delete-account-code"),
    path("goodbye/", account_deleted, name="account-deleted"),
]
