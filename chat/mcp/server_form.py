"""The form of a server in the admin: its headers go in and never come out."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms

from chat.mcp.configuration import SERVER_NAME, is_http_address
from chat.models import McpServer
from klerai.encryption import encrypt

_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\t -~]+)")


class McpServerForm(forms.ModelForm):  # type: ignore[type-arg]
    headers = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off"}),
        help_text="One a line: “Authorization: Bearer …”. Kept encrypted, never shown; empty keeps the old ones.",
    )
    drops_headers = forms.BooleanField(required=False, label="Remove the headers there are")

    class Meta:
        model = McpServer
        fields = ("name", "url", "is_enabled")

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not SERVER_NAME.fullmatch(name):
            raise forms.ValidationError("Use at most 32 letters, digits, - and single _, beginning with a letter.")
        return name

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        if not is_http_address(url):
            raise forms.ValidationError("Write an address that starts with http:// or https://, without a password.")
        return url

    def clean_headers(self) -> dict[str, str]:
        lines = [line.strip() for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        found = [_HEADER.fullmatch(line) for line in lines]
        if None in found:
            raise forms.ValidationError("Write each header on a line of its own: its name, a colon and its value.")
        return {header[1]: header[2].strip() for header in found if header is not None}

    def save(self, commit: bool = True) -> Any:
        if self.cleaned_data["headers"]:
            self.instance.headers_cipher = encrypt(json.dumps(self.cleaned_data["headers"]))
        elif self.cleaned_data["drops_headers"]:
            self.instance.headers_cipher = ""
        return super().save(commit)
