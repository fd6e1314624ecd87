"""What a key may do: one scope for looking, one for asking and changing, one for money."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Access(models.TextChoices):
    """A scope of a key. A session may do all that its person may."""

    READ = "read", "Look at conversations, runs and documents, and search"
    CHAT = "chat", "Ask questions, and change conversations and documents"
    BILLING = "billing", "Look at credits and the ledger, and open the checkout"


def every_scope() -> list[str]:
    return list(Access.values)


def scopes_for(method: str | None) -> tuple[Access, ...]:
    """Any of these opens a door that names no others for itself."""
    return (Access.READ,) if method in SAFE_METHODS else (Access.CHAT,)


def in_words(scopes: Iterable[Access]) -> str:
    return " or ".join(f"“{scope.value}”" for scope in scopes)
