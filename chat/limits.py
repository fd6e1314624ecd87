"""Limits that an answer ran into, by name: how much of each was used, when it opens again, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that kept a run from using more. `message` says so to the person; without `resets_at` it is the run's."""

    name: str
    used: int
    max: int
    message: str
    resets_at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "used": self.used,
            "max": self.max,
            "resets_at": None if self.resets_at is None else self.resets_at.isoformat(),
            "message": self.message,
        }


def ceiling_reached(*, used: int, most: int) -> Reached:
    return Reached(
        "ceiling",
        used,
        most,
        f"This question reached its ceiling of {most:,} credits, so no more tools were used. Ask for the rest in "
        "another question, or raise the ceiling.",
    )


def calls_reached(most: int, *, mode: str) -> Reached:
    return Reached(
        "tool_calls",
        most,
        most,
        f"{mode} makes at most {most} tool calls a question, so no more tools were used. Ask for the rest in another "
        "question.",
    )


def seconds_reached(used: float, most: float, *, mode: str) -> Reached:
    return Reached(
        "tool_seconds",
        round(used),
        round(most),
        f"{mode} gives its tools {most:g} seconds a question, so no more of them were used. Ask for the rest in "
        "another question, or in another mode.",
    )


def turns_reached(most: int, *, mode: str) -> Reached:
    return Reached(
        "turns",
        most,
        most,
        f"{mode} takes at most {most} turns a question, so it searched no further. Ask for the rest in another "
        "question.",
    )
