"""The pages on which a person changes their e-mail."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.core import ratelimit
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from klerai.accounts import email_change
from klerai.accounts.forms import DoorForm
from klerai.accounts.models import EmailChange, Person

SENT = "A link is on its way to {email}. Until you open it, your e-mail stays as it is."
TOO_SOON = "A link was sent to {email} less than three minutes ago. Look among the unwanted mail, or wait a little."


class NewEmailForm(DoorForm):
    email = forms.EmailField(max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "email"}))

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        self.fields["email"].label = "New e-mail"

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].lower()
        if email == self.person.email:
            raise forms.ValidationError("This is your e-mail already.")
        return email


@never_cache
@login_required
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth is untyped
@require_http_methods(["GET", "HEAD", "POST"])
def new_email(request: HttpRequest) -> HttpResponse:
    """Answers the same whether or not the address belongs to somebody; its owner is told by mail."""
    person = _person(request)
    form = NewEmailForm(request.POST or None, person=person)
    if not form.is_valid():
        return render(request, "account/email_change.html", {"form": form})
    refused: HttpResponse | None = ratelimit.consume_or_429(request, action="manage_email", user=person)
    if refused:
        return refused
    with transaction.atomic():
        change = email_change.ask_for(person, form.cleaned_data["email"], now=timezone.now())
        _send_link(request, change)
    return redirect("settings")


@login_required
@require_POST
def send_again(request: HttpRequest) -> HttpResponse:
    change = email_change.pending_change(_person(request))
    if change is not None:
        _send_link(request, change)
    return redirect("settings")


@login_required
@require_POST
def give_up(request: HttpRequest) -> HttpResponse:
    person = _person(request)
    if email_change.give_up(person):
        messages.success(request, f"Your e-mail stays {person.email}.")
    return redirect("settings")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def confirm_email(request: HttpRequest, key: str) -> HttpResponse:
    """Opening the link is not enough, since mail scanners do that; and it counts for the person who asked only."""
    person = _person(request)
    if request.method != "POST":
        return render(request, "account/email_change_confirm.html", {"change": email_change.change_behind(person, key)})
    try:
        outcome: email_change.Changed | email_change.LinkUnknown = email_change.confirm(person, key)
    except IntegrityError:  # somebody signed up with the address in this very moment
        outcome = email_change.LinkUnknown()
    match outcome:
        case email_change.LinkUnknown():
            return render(request, "account/email_change_confirm.html", {"change": None})
        case email_change.Changed(old, new):
            told = {"from_email": old, "to_email": new}
            get_adapter().send_notification_mail("account/email/email_changed", person, told, email=old)
            messages.success(request, f"Your e-mail is {new} now.")
            return redirect("settings")


def _send_link(request: HttpRequest, change: EmailChange) -> None:
    """To one address at most once in three minutes, whoever asks."""
    if not ratelimit.consume(request, action="confirm_email", key=change.email):
        messages.warning(request, TOO_SOON.format(email=change.email))
        return
    link = request.build_absolute_uri(reverse("account_confirm_new_email", args=[email_change.link_key(change)]))
    kind = "email_taken" if email_change.is_taken(change) else "email_change"
    context = {"link": link, "reset_link": request.build_absolute_uri(reverse("account_reset_password"))}
    get_adapter().send_mail(f"account/email/{kind}", change.email, context)
    messages.success(request, SENT.format(email=change.email))


def _person(request: HttpRequest) -> Person:
    assert isinstance(request.user, Person)
    return request.user
