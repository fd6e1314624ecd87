"""The signature under an announcement, over its raw bytes."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta

from billing.errors import BadSignature

TOLERANCE = timedelta(seconds=300)


def check(raw: bytes, header: str, *, secret: str, now: datetime) -> None:
    """Raises BadSignature unless one of the header's signatures is ours and its time is now, give or take 5 minutes.

    While a secret is changed there are several; any of them will do.
    """
    parts = [part.partition("=")[::2] for part in header.split(",")]
    stamps = [value for name, value in parts if name.strip() == "t"]
    signatures = [value for name, value in parts if name.strip() == "v1"]
    if not secret or len(stamps) != 1 or not (stamps[0].isascii() and stamps[0].isdigit()) or len(stamps[0]) > 12:
        raise BadSignature
    if abs(int(now.timestamp()) - int(stamps[0])) > TOLERANCE.total_seconds():
        raise BadSignature
    expected = _signature(raw, stamps[0], secret)
    if not any(hmac.compare_digest(expected.encode(), signature.encode()) for signature in signatures):
        raise BadSignature


def signed(raw: bytes, *, secret: str, now: datetime) -> str:
    """The header of an announcement that is made here: of the test checkout."""
    stamp = str(int(now.timestamp()))
    return f"t={stamp},v1={_signature(raw, stamp, secret)}"


def _signature(raw: bytes, stamp: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{stamp}.".encode() + raw, hashlib.sha256).hexdigest()
