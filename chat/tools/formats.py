"""What texts of a format look like: those of JSON Schema, and those that guard a path, an address or SQL."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit
from uuid import UUID

from klerai.http import is_public


@dataclass(frozen=True, slots=True)
class Format:
    """`wanted` says to the model what a text of this format is."""

    holds: Callable[[str], bool]
    wanted: str


def format_named(name: Any) -> Format | None:
    """The format, or None where a schema names one that is not checked here."""
    return _FORMATS.get(name) if isinstance(name, str) else None


def _parses(read: Callable[[str], object]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        with suppress(ValueError):
            read(text)
            return True
        return False

    return holds


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)?")
_MOMENT = re.compile(rf"{_DATE.pattern}[Tt ]{_TIME.pattern}")
_EMAIL = re.compile(r"[^@\s\"<>(),;:]{1,64}@[^@\s\"<>(),;:]{1,255}")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.I)
_FRACTION = re.compile(r"\.(\d{1,6})\d*")


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _parses(date.fromisoformat)(text)


def _is_time(text: str) -> bool:
    return bool(_TIME.fullmatch(text)) and _parses(time.fromisoformat)(_readable(text))


def _is_moment(text: str) -> bool:
    """With or without an offset: many servers mean local time by it."""
    return bool(_MOMENT.fullmatch(text)) and _parses(datetime.fromisoformat)(_readable(text))


def _readable(text: str) -> str:
    return _FRACTION.sub(lambda found: f".{found[1].ljust(6, '0')}", text.upper())


def _is_inside(text: str) -> bool:
    """A path that does not lead out of where it begins, however its dots and slashes are written."""
    plain = unquote(unquote(text)).replace("\\", "/")
    parts = plain.split("/")
    return text.isprintable() and plain.isprintable() and ".." not in parts and not plain.startswith("~")


def _is_relative(text: str) -> bool:
    plain = unquote(unquote(text)).replace("\\", "/")
    return _is_inside(text) and not plain.startswith("/") and ":" not in plain.partition("/")[0]


def _is_address(text: str) -> bool:
    """An address out in the world: by http or https, without a login, and of no machine that is not public."""
    if not text.isprintable() or any(character in text for character in ' \\<>"'):
        return False
    try:
        parts = urlsplit(text)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return False
    return _is_public_host(normalize("NFKC", unquote(host)).lower())


def _is_public_host(host: str) -> bool:
    """A name or an IPv4 address that anybody may reach. What begins its last part with a digit is read as a number."""
    if is_public(host):
        return True
    *names, last = re.split(r"[.。｡]", host)
    return (
        bool(names) and not last[:1].isdigit() and ":" not in host and f".{last}" not in _LOCAL and names[-1] != "home"
    )


_LOCAL = frozenset({".", ".localhost", ".local", ".internal", ".intranet", ".lan", ".localdomain"})
_QUOTED_SQL = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_READS = re.compile(r"[\s(]*(select|with|values|from|table|describe|show|summarize|explain)\b", re.IGNORECASE)
_ACTS = re.compile(
    r"\binto\b|\bdelete\s+from\b|\bupdate\b.*\bset\b|\b(drop|alter|create|truncate|grant|attach|detach)\s+\w",
    re.IGNORECASE | re.DOTALL,
)


def _is_reading_sql(text: str) -> bool:
    """One statement that only reads, looked at with everything quoted put aside."""
    bare = _QUOTED_SQL.sub(" x ", text).rstrip().removesuffix(";")
    has_tricks = any(mark in bare for mark in (";", "--", "/*", "'", '"', "\x00"))
    return bool(_READS.match(bare)) and not has_tricks and not _ACTS.search(bare)


_ADDRESS = Format(_is_address, "a public address that begins with https:// or http://, without a user name or password")
_FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "date": Format(_is_date, "a date such as 2026-03-01"),
        "time": Format(_is_time, "a time such as 09:30:00"),
        "date-time": Format(_is_moment, "a date and time such as 2026-03-01T09:30:00Z"),
        "email": Format(lambda text: bool(_EMAIL.fullmatch(text)), "an e-mail address such as name@example.org"),
        "hostname": Format(lambda text: bool(_HOST.fullmatch(text)), "the name of a host such as www.example.org"),
        "ipv4": Format(_parses(ipaddress.IPv4Address), "an IPv4 address such as 192.0.2.1"),
        "ipv6": Format(_parses(ipaddress.IPv6Address), "an IPv6 address such as 2001:db8::1"),
        "uuid": Format(_parses(UUID), "a UUID"),
        "uri": _ADDRESS,
        "url": _ADDRESS,
        "path": Format(_is_inside, "a path without “..”, “~” or hidden characters"),
        "relative-path": Format(
            _is_relative, "a path that begins at the folder it is for, without “/” in front or “..”"
        ),
        "sql": Format(_is_reading_sql, "one SELECT statement, without comments and without a second statement"),
    }
)
