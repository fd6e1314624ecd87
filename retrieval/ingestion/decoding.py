"""Bytes of unknown encoding as text."""

from __future__ import annotations

import codecs
import re

from retrieval.errors import UnreadableFile

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""charset\s{0,9}=\s{0,9}["']?([A-Za-z0-9_.:-]{2,40})""")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
_SAMPLE = 65_536
MOST_CONTROLS = 0.02  # more of them than this, and the bytes are no text
MOST_DAMAGE = 0.001  # fewer bad bytes than this, and it is UTF-8 that was damaged


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file can be text in an encoding we read."""
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return True
    sample = head[:_SAMPLE]
    return len(sample) - len(sample.translate(None, _CONTROLS)) <= MOST_CONTROLS * len(sample)


def decoded(data: bytes, *, declared: bool = False) -> str:
    """By its mark, else UTF-8, else what an HTML file declares, else Windows-1252. Raises UnreadableFile."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _by_mark(data, encoding)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if declared and (found := _DECLARED.search(data[:1024])) and (text := _as_declared(data, found[1].decode())):
        return text
    repaired = data.decode("utf-8", "replace")
    damage = repaired.count("\N{REPLACEMENT CHARACTER}")
    if damage <= MOST_DAMAGE * len(data) and len(repaired) - damage < len(data) - damage:
        return repaired
    return data.decode("cp1252", "replace")


def _by_mark(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableFile("The file says it is Unicode text, but it is damaged. Save it as UTF-8 again.") from error


def _as_declared(data: bytes, name: str) -> str | None:
    try:
        if not codecs.lookup(name)._is_text_encoding:  # what bytes.decode itself asks
            return None
        return data.decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
