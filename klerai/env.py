"""Typed reads of the environment: every setting is text once, here, and a value ever after."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import dotenv_values

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off", ""}


class BadSetting(Exception):
    """A setting that makes no sense. `str(error)` is a sentence that names the variable."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name


def load_dotenv(path: Path, into: MutableMapping[str, str]) -> None:
    """Add what `path` says to `into`; what stands there already wins. A missing file is fine."""
    for name, value in dotenv_values(path).items():
        if value is not None:
            into.setdefault(name, value)


class Environment:
    """Reads with a type, a default and a complaint."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, "").strip() or default

    def secret(self, name: str) -> str:
        """The value of `name`, or the content of the file that `name_FILE` points to."""
        value, file = self.text(name), self.text(f"{name}_FILE")
        if value or not file:
            return value
        try:
            return Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise BadSetting(f"{name}_FILE", f"points to {file}, which cannot be read: {reason}.") from error

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        match value.strip().lower():
            case text if text in _YES:
                return True
            case text if text in _NO:
                return False
        raise BadSetting(name, f"is {value!r}; it must be true or false.")

    def whole(self, name: str, default: int, *, at_least: int = 0, at_most: int = 2**31 - 1) -> int:
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or not at_least <= int(value) <= at_most:
            raise BadSetting(name, f"is {value!r}; it must be a whole number from {at_least} to {at_most}.")
        return int(value)

    def number(self, name: str, default: float, *, at_least: float, at_most: float) -> float:
        value = self.text(name)
        if not value:
            return default
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not at_least <= number <= at_most:
            raise BadSetting(name, f"is {value!r}; it must be a number from {at_least:g} to {at_most:g}.")
        return number

    def amount(self, name: str) -> float | None:
        """A positive number of dollars, or None when not set."""
        value = self.text(name)
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e9:
            raise BadSetting(name, f"is {value!r}; it must be a positive amount in US dollars.")
        return number

    def choice(self, name: str, default: str, allowed: Mapping[str, str] | tuple[str, ...]) -> str:
        """One of `allowed`; a mapping also says what an alias stands for."""
        value = self.text(name, default)
        if value not in allowed:
            raise BadSetting(name, f"is {value!r}; it must be one of {', '.join(sorted(allowed))}.")
        return allowed[value] if isinstance(allowed, Mapping) else value

    def words(self, name: str, default: str = "") -> list[str]:
        return [word.strip() for word in self.text(name, default).split(",") if word.strip()]

    def url(self, name: str, default: str = "", *, schemes: tuple[str, ...] = ("http", "https")) -> str:
        value = self.text(name, default)
        if not value:
            return ""
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError as error:
            raise BadSetting(name, f"is not an address: {error}.") from error
        if parts.scheme not in schemes or ("http" in schemes and not parts.hostname):
            raise BadSetting(name, f"must be an address that starts with {' or '.join(s + '://' for s in schemes)}.")
        return value.rstrip("/")
