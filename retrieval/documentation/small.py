"""What a small model is to the documentation: a question with a form to fill in, and maybe nobody to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from retrieval.documentation.clock import Clock

PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Form:
    """What the model fills in; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class SmallModel(Protocol):
    """One structured call: the form's fields, None when the model gave none. Never raises for a model's failure."""

    def __call__(self, task: str, material: str, *, form: Form) -> Awaitable[Mapping[str, Any] | None]: ...


async def filled_in(
    small: SmallModel | None, task: str, material: str, *, form: Form, clock: Clock, leaving_seconds: float
) -> Mapping[str, Any] | None:
    """The fields, or None where there is no model, no time for it beside `leaving_seconds`, or no answer in time."""
    seconds = min(PATIENCE_SECONDS, clock.left - leaving_seconds)
    if small is None or seconds <= 0:
        return None
    try:
        async with asyncio.timeout(seconds):
            return await small(task, material, form=form)
    except TimeoutError:
        return None
