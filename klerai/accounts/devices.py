"""What a browser says about itself, in plain words."""

from __future__ import annotations

# The first that is found counts: browsers also name those they descend from.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Vivaldi", "Vivaldi"),
    ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chromium", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "a Mac"),
    ("Linux", "Linux"),
)
UNKNOWN = "An unknown browser"


def device_words(user_agent: str) -> str:
    """Such as “Firefox on Linux”. It is what the browser claims, so it is never used to decide anything."""
    browser = _first(BROWSERS, user_agent) or UNKNOWN
    system = _first(SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((words for mark, words in known if mark in user_agent), "")
