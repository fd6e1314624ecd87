"""Questions to begin with, which this server can answer as it is set up now."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Starter:
    question: str
    note: str


_SUMS = (
    Starter("What is 17.5 % of 2,480?", "uses the calculator"),
    Starter("What is 12 × 48, and what is 8 % of 900?", "two tools side by side"),
)
_OFFLINE = (
    Starter("Count to 500.", "a long answer: try Stop, or reload the page"),
    Starter("What can you do here?", "what works without a model"),
)
_WITH_MODEL = (
    Starter("Explain hash tables, with a short Python example.", "headings and code"),
    Starter("Compare TCP and UDP in a small table.", "a table"),
)


def is_offline() -> bool:
    """Whether answers come without a model on this server."""
    return bool(settings.STRATEGY == "offline")


def starters() -> tuple[Starter, ...]:
    return _SUMS + (_OFFLINE if is_offline() else _WITH_MODEL)
