"""The form by which staff give credits."""

from __future__ import annotations

import re
import uuid
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from billing import credits
from klerai.accounts.models import Person
from klerai.accounts.people import find_person


class CreditsField(forms.IntegerField):
    """A whole number in plain digits: no sign, point, exponent or other script."""

    def to_python(self, value: Any) -> int | None:
        if value not in self.empty_values and not re.fullmatch("[0-9]{1,9}", str(value).strip()):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        number: int | None = super().to_python(value)
        return number


class GrantForm(forms.Form):
    email = forms.EmailField(label="E-mail address")
    amount = CreditsField(label="Credits", min_value=1, max_value=credits.MOST_PER_GRANT)
    reason = forms.CharField(
        max_length=credits.LONGEST_REASON,
        widget=forms.TextInput(attrs={"size": 60}),
        help_text="It stays in the ledger, where the person can read it.",
    )
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)  # pressing the button twice grants once

    person: Person  # who gets them; only of a valid form

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        person = find_person(email)
        if person is None:
            raise ValidationError("Nobody has this address.")
        self.person = person
        return email
