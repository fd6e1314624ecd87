"""API keys: made once, stored as a hash, checked on every request."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Q

from klerai.accounts.access import Access
from klerai.accounts.models import ApiKey, Person

SECRET_BYTES = 32
PREFIX_BYTES = 6
MAX_TEXT_LENGTH = 128
USE_NOTED_EVERY = timedelta(minutes=1)


def create_key(person: Person, name: str = "default", scopes: Iterable[str] = Access.values) -> tuple[ApiKey, str]:
    """The new key and its text, which exists nowhere else: whoever asked must show it now."""
    prefix = secrets.token_hex(PREFIX_BYTES)
    text = f"kl_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    granted = [scope for scope in Access.values if scope in set(scopes)]
    key = ApiKey.objects.create(person=person, name=name, prefix=prefix, digest=_digest(text), scopes=granted)
    return key, text


def find_key(text: str) -> ApiKey | None:
    """The key with exactly this text, read afresh, if it and its person are active."""
    prefix = _prefix(text)
    key = ApiKey.objects.select_related("person").filter(prefix=prefix).first() if prefix else None
    is_same = hmac.compare_digest(_digest(text), key.digest if key else _digest(""))
    if key is None or not (is_same and key.is_active and key.person.is_active):
        return None
    return key


def note_use(key: ApiKey, *, now: datetime) -> None:
    """Remember when `key` was last used, to the minute, so that a busy key costs one write a minute."""
    before = now - USE_NOTED_EVERY
    if key.last_used_at is None or key.last_used_at < before:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=before)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def _prefix(text: str) -> str:
    if len(text) > MAX_TEXT_LENGTH or not text.isascii():
        return ""
    match text.split("_", 2):
        case ["kl", prefix, secret] if prefix.isalnum() and secret:
            return prefix
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
