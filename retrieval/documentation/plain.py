"""Text from outside, without the characters that have no business in it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

_LONGEST_ADDRESS = 2_000
# Control characters but tab and line feed, marks that turn the direction of writing, and invisible ones.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """The text as it can be stored, shown and told to a model; line ends are line feeds."""
    ended = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _UNWANTED.sub("", ended).encode("utf-8", "replace").decode("utf-8")


def on_one_line(value: Any, *, most: int) -> str:
    """The value if it is text, else nothing."""
    return " ".join(plain(value).split())[:most] if isinstance(value, str) else ""


def address_in(value: Any) -> str:
    """The value if it is an address that a person may be sent to, else nothing."""
    text = on_one_line(value, most=_LONGEST_ADDRESS + 1)
    if not text or len(text) > _LONGEST_ADDRESS or re.search(r"[\s\"<>`\\]", text):
        return ""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc else ""
