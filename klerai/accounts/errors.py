"""Why a door stays shut.

AccessRefused
├── Unauthenticated    nobody, or a login that is no longer good
└── Forbidden          somebody, but not like this
"""

from __future__ import annotations


class AccessRefused(Exception):
    """The request goes no further; nothing was read or written for it."""


class Unauthenticated(AccessRefused):
    """Unknown, revoked, suspended and missing look the same from outside."""


class Forbidden(AccessRefused):
    """`reason` is a sentence for the person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
