"""What became of an announcement, or of a look at Stripe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Applied:
    """Our rows say what Stripe says."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """There was nothing for us in it; `why` is a sentence for operators."""

    why: str


Outcome = Applied | Skipped
APPLIED = Applied()
