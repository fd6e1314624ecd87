"""What every page's template knows without being told."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

THEMES = frozenset({"light", "dark"})


def page(request: HttpRequest) -> dict[str, Any]:
    """The theme of the first paint: the profile's, else the cookie's, else the system decides."""
    person = getattr(request, "user", None)
    theme = getattr(person, "theme", "") or request.COOKIES.get("theme", "")
    return {"theme": theme if theme in THEMES else ""}
