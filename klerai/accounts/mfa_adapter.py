"""Where allauth asks us about second factors: how secrets are kept, how the QR code is drawn, what refusals say."""

from __future__ import annotations

from typing import Any, ClassVar

import qrcode
from allauth.mfa.adapter import DefaultMFAAdapter
from django.utils.html import format_html
from django.utils.safestring import SafeString

from klerai.encryption import decrypt, encrypt


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth is untyped
    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "That is not the code, or it was used already. Wait for the next one and write that.",
        "unverified_email": "Confirm your e-mail first; then set up the second factor.",
        "cannot_generate_recovery_codes": "Set up the second factor first; recovery codes come with it.",
    }

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)

    def build_totp_svg(self, url: str) -> SafeString:
        """Markup to stand in the page itself: geometry in attributes, looks by class, nothing to load."""
        code = qrcode.QRCode()
        code.add_data(url)
        squares = code.get_matrix()
        path = "".join(f"M{x} {y}h1v1h-1z" for y, row in enumerate(squares) for x, is_dark in enumerate(row) if is_dark)
        return format_html(
            '<svg class="qr-code" viewBox="0 0 {0} {0}" role="img" aria-label="The key as a QR code"'
            ' shape-rendering="crispEdges"><path d="{1}"/></svg>',
            len(squares),
            path,
        )
