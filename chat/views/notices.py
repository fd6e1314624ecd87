"""What the page says about a run that did not end with an answer: what happened, what it cost, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone

from chat.models import Run

_HEADINGS = {
    "insufficient_credits": "Your credits ran out before there was an answer.",
    "safety_blocked": "This question was not answered.",
    "model_unavailable": "The model did not answer.",
    "mandatory_tool_missing": "The answer skipped a step it must take.",
    "response_tool_failed": "The answer could not be finished properly.",
    "deadline_exceeded": "This took too long.",
    "stopped": "Stopped by you.",
    "interrupted": "The server restarted during this answer.",
    "internal": "Something broke on our side.",
    "capacity": "There is no room for another answer right now.",
}
_SENTENCES = {
    "safety_blocked": "Nothing was charged. You can reword it.",
    "model_unavailable": "Nothing was charged. Trying again often helps.",
    "mandatory_tool_missing": "It was asked twice. Nothing was charged.",
    "response_tool_failed": "It was written but could not be delivered with its sources, twice. Nothing was charged.",
    "deadline_exceeded": "It was ended there. The text so far is kept, and nothing was charged.",
    "stopped": "Nothing was written, so nothing was charged.",
    "interrupted": "The text so far is kept, and nothing was charged.",
    "capacity": "Nothing was charged.",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Stands under an answer that is none, or not a whole one."""

    code: str
    heading: str
    sentence: str
    is_failure: bool = True
    options_url: str = ""


def notice_of(run: Run) -> Notice | None:
    """None for a run that was answered, goes on, or was stopped with text to keep: its receipt line says enough."""
    if run.error is None:
        return None
    code = str(run.error.get("code") or "internal")
    return Notice(
        code=code,
        heading=_heading(code, run.error.get("details") or {}),
        sentence=_sentence(code, run),
        is_failure=code != "stopped",
        options_url=reverse("billing") if code == "insufficient_credits" else "",
    )


@dataclass(frozen=True, slots=True)
class LimitNote:
    """Stands under an answer that a limit made shorter; the link leads to where it can be changed or waited out."""

    words: str
    link_words: str = ""
    url: str = ""


def limits_met(run: Run) -> tuple[LimitNote, ...]:
    """The limits an answer ran into. Of a run without one, its notice says enough."""
    if run.error is not None or run.receipt is None:
        return ()
    return tuple(_limit_note(reached) for reached in run.receipt.get("limits", ()))


def _limit_note(reached: Mapping[str, Any]) -> LimitNote:
    match reached["name"]:
        case "ceiling":
            return LimitNote(reached["message"], "Change the ceiling", f"{reverse('settings')}#ceiling")
        case "daily" | "period":
            return LimitNote(reached["message"], "See options", reverse("billing"))
        case _:
            return LimitNote(reached["message"])


def _heading(code: str, details: Mapping[str, Any]) -> str:
    if code == "deadline_exceeded" and "seconds" in details:
        return f"This took longer than {details['seconds']:g} seconds."
    return _HEADINGS.get(code, _HEADINGS["internal"])


def _sentence(code: str, run: Run) -> str:
    tried = (run.error or {}).get("details", {}).get("models_tried", 1)
    if code == "model_unavailable" and tried > 1:
        return f"{tried} models were tried. Nothing was charged."
    if code == "insufficient_credits":
        return _still_true(run.error or {})
    return _SENTENCES.get(code, f"Nothing was charged. Number {run.run_id} helps us to find it.")


def _still_true(error: Mapping[str, Any]) -> str:
    """What was said of the limit that bound, until it has opened again."""
    resets_at = (error.get("details") or {}).get("resets_at")
    if resets_at is None or datetime.fromisoformat(resets_at) <= timezone.now():
        return "Nothing was charged."
    return str(error["message"]).removeprefix(_HEADINGS["insufficient_credits"]).strip()
