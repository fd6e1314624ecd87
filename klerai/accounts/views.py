"""The pages at the door that differ from allauth's."""

from __future__ import annotations

from typing import Any

from allauth.account.views import EmailVerificationSentView, SignupView
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from klerai.accounts.forms import SignupForm


class Signup(SignupView):  # type: ignore[misc]  # allauth is untyped
    """Signing up is one transaction: the person, the address and the mail that confirms it, or none."""

    def form_valid(self, form: SignupForm) -> HttpResponseBase:
        if form.account_already_exists:
            # As slow as making the account, so that the time does not tell that there is one.
            make_password(form.cleaned_data["password1"])
        try:
            return self._sign_up(form)
        except IntegrityError:
            # Two sign-ups with one address at once: the later one is told what it is told when it comes later.
            form.account_already_exists = True
            return self._sign_up(form)

    def closed(self) -> HttpResponse:
        return render(self.request, "account/signup_closed.html", {"signup": settings.SIGNUP})

    @transaction.atomic
    def _sign_up(self, form: SignupForm) -> HttpResponseBase:
        response: HttpResponseBase = super().form_valid(form)
        return response


class VerificationSent(EmailVerificationSentView):  # type: ignore[misc]  # allauth is untyped
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """In local mode the mail lies on this machine, and nobody would look for it there."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return {**context, "local_mail_url": "/local/mail/" if settings.LOCAL_MODE else ""}
