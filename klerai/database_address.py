"""Whether the database of DATABASE_URL answers, said in a sentence when it does not."""

from __future__ import annotations

from typing import Any

import dj_database_url
import psycopg

from klerai.env import BadSetting

_CONNECT_SECONDS = 10
_DJANGO_ONLY = {"pool", "isolation_level", "server_side_binding", "assume_role"}


class Unreachable(Exception):
    """`str(error)` is a sentence that names the variable and never the password."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The database of DATABASE_URL cannot be used: {reason}. Nothing was changed.")


def check_address(url: str) -> None:
    """Connect once. Raises Unreachable when that fails, BadSetting when it cannot be tried."""
    try:
        psycopg.connect(**parse_address(url)).close()
    except psycopg.OperationalError as error:
        raise Unreachable(_reason(str(error))) from None
    except (psycopg.ProgrammingError, UnicodeError) as error:
        raise BadSetting("DATABASE_URL", f"is not a PostgreSQL address: {str(error).strip()}.") from None


def parse_address(url: str) -> dict[str, Any]:
    """What libpq takes of the address, read as Django reads it. Raises BadSetting."""
    try:
        parsed = dj_database_url.parse(url)
    except ValueError as error:  # an unknown scheme is one as well
        raise BadSetting("DATABASE_URL", "must be an address that starts with postgresql://.") from error
    if "postgresql" not in parsed.get("ENGINE", ""):
        raise BadSetting("DATABASE_URL", "must be an address that starts with postgresql://.")
    parts = {
        "host": parsed.get("HOST"),
        "port": parsed.get("PORT"),
        "user": parsed.get("USER"),
        "password": parsed.get("PASSWORD"),
        "dbname": parsed.get("NAME"),
        "connect_timeout": _CONNECT_SECONDS,
        **{name: value for name, value in parsed.get("OPTIONS", {}).items() if name not in _DJANGO_ONLY},
    }
    return {name: value for name, value in parts.items() if value not in ("", None)}


def _reason(message: str) -> str:
    """The server's or the library's own words, from the last attempt, without its advice."""
    words = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    for noise in ("FATAL:", "connection failed:"):
        words = words.replace(noise, "")
    return " ".join(words.split()).rstrip(".")
