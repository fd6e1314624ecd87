"""What can go wrong with the embedded server.

PostgresError
├── NotWritable        the data directory cannot be written
├── DiskFull           no space left where the data directory is
├── NotOurs            the database belongs to another account of this machine
├── PasswordsLost      the password file is gone
├── UnknownVersion     the database was made by a PostgreSQL we do not have
├── NoAccount          we are root and there is no account to run the server as
├── StartTimedOut      the server did not become ready in time
└── CommandFailed      anything else a PostgreSQL program complained about
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

_HARDLY_ANYTHING = 1 << 20


class PostgresError(Exception):
    """`str(error)` is a sentence for the person at the terminal."""


class NotWritable(PostgresError):
    def __init__(self, path: Path, *, reason: str) -> None:
        super().__init__(
            f"The data directory {path} cannot be used: {reason}. Nothing was changed. "
            "Give this account access to it, or choose another one with KLERAI_DATA_DIR (up --data DIR)."
        )
        self.path = path


class DiskFull(PostgresError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"There is no space left on the disk of {path}. Nothing that was stored is lost. "
            "Free some space and start again."
        )
        self.path = path


class NotOurs(PostgresError):
    def __init__(self, path: Path, *, owner: str) -> None:
        super().__init__(
            f"The database in {path} belongs to the account {owner}. Nothing was changed. "
            f"Start KlerAI as {owner}, or choose another data directory with KLERAI_DATA_DIR (up --data DIR)."
        )
        self.path = path
        self.owner = owner


class PasswordsLost(PostgresError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The database's password file {path} is missing. The database itself is intact. Put the file back "
            "from a copy of the data directory, or choose another data directory with KLERAI_DATA_DIR (up --data DIR)."
        )
        self.path = path


class UnknownVersion(PostgresError):
    def __init__(self, path: Path, *, version: str) -> None:
        super().__init__(
            f"The database in {path} was made by PostgreSQL {version}, which this installation does not have. "
            "Nothing was changed. Install the version of KlerAI that made it."
        )
        self.path = path
        self.version = version


class NoAccount(PostgresError):
    def __init__(self) -> None:
        super().__init__(
            "PostgreSQL refuses to run as root, and this machine has neither an account “postgres” nor “nobody”. "
            "Start KlerAI as a normal user."
        )


class StartTimedOut(PostgresError):
    def __init__(self, log: Path, *, seconds: int, last_words: str) -> None:
        super().__init__(
            f"PostgreSQL did not become ready within {seconds} seconds and was stopped. Nothing is lost. "
            f"The last line of {log}: {last_words}"
        )
        self.log = log
        self.seconds = seconds


class CommandFailed(PostgresError):
    def __init__(self, program: str, *, last_words: str) -> None:
        super().__init__(f"PostgreSQL’s {program} failed. Nothing that was stored is lost. It said: {last_words}")
        self.program = program


def because(error: OSError, path: Path) -> PostgresError:
    """The same trouble, worded for people."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return DiskFull(path)
    return NotWritable(path, reason=(error.strerror or str(error)).lower())


def complaint(program: str, output: str, path: Path) -> PostgresError:
    """What a failed program's output means."""
    return trouble_in(output, path) or CommandFailed(program, last_words=last_words(output))


def trouble_in(output: str, path: Path) -> PostgresError | None:
    """A full disk, also one too full to write that down."""
    says_so = any(words in output for words in ("No space left on device", "Disk quota exceeded", "File too large"))
    place = os.statvfs(path)
    if says_so or place.f_bavail * place.f_frsize < _HARDLY_ANYTHING:
        return DiskFull(path)
    return None


def last_words(output: str) -> str:
    """The most telling line: the last one that names a failure, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
    return (telling or lines or ["nothing"])[-1]
