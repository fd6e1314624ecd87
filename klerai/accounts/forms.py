"""The forms at the door: allauth's, with our words, the browser's time zone, and errors under their field."""

from __future__ import annotations

from typing import Any

from allauth.account import forms as allauth_forms
from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from klerai.accounts.time_zones import take_first_zone

LABELS = {
    "login": "E-mail",
    "email": "E-mail",
    "password": "Password",
    "oldpassword": "Your password now",
    "password1": "Password",
    "code": "Code",
    "remember": "Keep me signed in on this device",
}
NEW_PASSWORD_HELP = "At least 8 characters, not only figures, and not one of the common ones."


class DoorForm(forms.Form):
    """Labels, classes and autocomplete of our pages; sits before allauth's class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("password2", None)
        for name, field in self.fields.items():
            field.label = LABELS.get(name, field.label)
            field.help_text = NEW_PASSWORD_HELP if name == "password1" else ""
            field.widget.attrs.pop("placeholder", None)
            if not isinstance(field.widget, forms.CheckboxInput | forms.HiddenInput):
                field.widget.attrs["class"] = "input"

    def full_clean(self) -> None:
        """After a failed try the focus goes to the first field to put right."""
        super().full_clean()
        for name in self.errors:
            if name in self.fields:
                self.fields[name].widget.attrs["autofocus"] = True
                break


class ZonedForm(DoorForm):
    """Carries the time zone that static/js/zone.js fills in; without script it stays empty."""

    time_zone = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)


class LoginForm(ZonedForm, allauth_forms.LoginForm):  # type: ignore[misc]  # allauth is untyped
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].widget.attrs["autocomplete"] = "username"

    def clean(self) -> dict[str, Any]:
        """What allauth says about the whole form belongs to the password: it does not tell which part is wrong."""
        try:
            super().clean()
        except forms.ValidationError as error:
            self.add_error("password", error)
        return self.cleaned_data

    def login(self, request: HttpRequest, redirect_url: str | None = None) -> HttpResponseBase:
        take_first_zone(self.user, self.cleaned_data["time_zone"])
        response: HttpResponseBase = super().login(request, redirect_url)
        return response


class SignupForm(ZonedForm, allauth_forms.SignupForm):  # type: ignore[misc]  # allauth is untyped
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].widget.attrs["autocomplete"] = "username"


class ResetPasswordForm(DoorForm, allauth_forms.ResetPasswordForm):  # type: ignore[misc]  # allauth is untyped
    pass


class NewPasswordForm(DoorForm, allauth_forms.ResetPasswordKeyForm):  # type: ignore[misc]  # allauth is untyped
    pass


class ChangePasswordForm(DoorForm, allauth_forms.ChangePasswordForm):  # type: ignore[misc]  # allauth is untyped
    pass


class SetPasswordForm(DoorForm, allauth_forms.SetPasswordForm):  # type: ignore[misc]  # allauth is untyped
    pass


class ReauthenticateForm(DoorForm, allauth_forms.ReauthenticateForm):  # type: ignore[misc]  # allauth is untyped
    pass
