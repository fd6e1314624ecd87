"""What accounts refuse.

AccessRefused              why a door stays shut
├── Unauthenticated        nobody, or a login that is no longer good
├── Forbidden              somebody, but not like this
└── TooManyRequests        a program that sent more than its plan lets it, for now
ExportError
├── ExportUnderWay
├── ExportGone
└── ExportTooLarge
"""

from __future__ import annotations

from datetime import datetime


class AccessRefused(Exception):
    """The request goes no further; nothing was read or written for it."""


class Unauthenticated(AccessRefused):
    """Unknown, revoked, suspended and missing look the same from outside."""


class Forbidden(AccessRefused):
    """`reason` is a sentence for the person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooManyRequests(AccessRefused):
    """`limit` names it: the requests of one key, or those of all keys of a plan."""

    def __init__(self, *, limit: str, most: int, window_seconds: int, resets_at: datetime, wait_seconds: int) -> None:
        super().__init__(f"{most} requests in {window_seconds} s by the limit {limit!r}.")
        self.limit = limit
        self.most = most
        self.window_seconds = window_seconds
        self.resets_at = resets_at
        self.wait_seconds = wait_seconds


class ExportError(Exception):
    """An export cannot be asked for, or not be finished."""


class ExportUnderWay(ExportError):
    """One is being made; a person has one at a time."""


class ExportGone(ExportError):
    """Its person has left, or another attempt makes it by now."""


class ExportTooLarge(ExportError):
    """The file would pass `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"An export has at most {most_bytes:,} bytes.")
        self.most_bytes = most_bytes
