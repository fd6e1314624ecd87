"""What every page's template knows without being told."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

THEMES = frozenset({"light", "dark"})
PLACES = ("knowledge", "search")


def page(request: HttpRequest) -> dict[str, Any]:
    """The theme of the first paint: the profile's, else the cookie's, else the system decides.

    And the place, and through whom one may sign in.
    """
    person = getattr(request, "user", None)
    theme = getattr(person, "theme", "") or request.COOKIES.get("theme", "")
    first = request.path.strip("/").partition("/")
    return {
        "theme": theme if theme in THEMES else "",
        "place": first[0] if first[0] in PLACES else "",
        "place_is": "true" if first[2] else "page",
        "social_logins": settings.SOCIAL_LOGINS,
    }
