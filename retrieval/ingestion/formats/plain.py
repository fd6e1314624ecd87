"""Plain text, and data in lines of JSON: kept as they are."""

from __future__ import annotations

import re

from retrieval.ingestion.content import Content, storable

_LINE = re.compile(r"[^\n]*\S[^\n]*")


def read_plain(text: str, media_type: str = "text/plain") -> Content:
    return Content(storable(text), media_type)


def read_lines(text: str, media_type: str = "application/x-ndjson") -> Content:
    """Every line that is not empty is a row."""
    kept = storable(text)
    return Content(kept, media_type, rows=tuple(match.start() for match in _LINE.finditer(kept)))
