"""The forms of the second factor: allauth's, with our words and a limit that speaks of codes."""

from __future__ import annotations

from typing import Any

from allauth.mfa.base import forms as base_forms
from allauth.mfa.totp import forms as totp_forms
from django import forms

from klerai.accounts.forms import DoorForm

TOO_MANY_CODES = "Too many wrong codes. Wait five minutes."
LIMITED = {"too_many_login_attempts", "rate_limited"}


class CodeForm(DoorForm):
    """One code, typed on whatever keyboard there is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["code"]
        field.widget.attrs |= {"class": "input code-input", "inputmode": "numeric", "maxlength": 32, "autofocus": True}

    def add_error(self, field: str | None, error: Any) -> None:
        if getattr(error, "code", None) in LIMITED:
            error = forms.ValidationError(TOO_MANY_CODES)
        super().add_error(field, error)


class SignInCodeForm(CodeForm, base_forms.AuthenticateForm):  # type: ignore[misc]  # allauth is untyped
    pass


class ConfirmCodeForm(CodeForm, base_forms.ReauthenticateForm):  # type: ignore[misc]  # allauth is untyped
    pass


class FirstCodeForm(CodeForm, totp_forms.ActivateTOTPForm):  # type: ignore[misc]  # allauth is untyped
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs.pop("autofocus")  # what to scan stands above it

    @property
    def secret_groups(self) -> list[str]:
        """The key in fours, as people type it."""
        return [self.secret[start : start + 4] for start in range(0, len(self.secret), 4)]
