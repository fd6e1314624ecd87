"""Questions about the weather, as they are put, and the place they name."""

from __future__ import annotations

import re

_ASKED = re.compile(
    r"^\W*(?:(?:please|can|could|you|what|what['’]s|how|how['’]s|will|is|be|tell|show|give|get|check|me|us|the"
    r"|current|today['’]s|tomorrow['’]s)\s+)*(?:weather|forecast)\b(?P<rest>[^\n]*)$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|for|at)\s+(?P<place>[^?!;:\n]{2,90})", re.IGNORECASE)
_TIME = re.compile(
    r"[\s,]+(?:right now|now|today|tonight|tomorrow|please|at the moment|this (?:week|weekend|morning|evening)"
    r"|(?:for |in |over )?the next .*|for \d+ days|like)\W*$",
    re.IGNORECASE,
)


def place_in(question: str) -> str | None:
    """The place whose weather is asked for."""
    asked = _ASKED.match(question.strip())
    found = _PLACE.search(asked["rest"]) if asked else None
    if found is None:
        return None
    place, before = found["place"].strip(" ."), ""
    while place != before:
        place, before = _TIME.sub("", place).strip(" .,"), place
    return place if len(place) > 1 and place.lower() not in {"today", "tomorrow", "now"} else None


def told(result: str) -> str:
    """What the tool said, its lines as a list."""
    head, *lines = result.splitlines() or [""]
    return "\n".join([head, "", *(f"- {line}" for line in lines)]).strip()
