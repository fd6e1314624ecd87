"""Other processes and other accounts of this machine, for tests that need real ones."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def is_root() -> bool:
    return os.geteuid() == 0


def postgres_processes(data_dir: Path) -> list[int]:
    """The postmasters whose cluster lies under `data_dir`; each works inside its cluster."""
    home = (data_dir / "postgres").resolve()
    found: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            works_in = (process / "cwd").resolve(strict=True)
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if works_in.is_relative_to(home) and command[0].endswith(b"/postgres"):
            found[int(process.name)] = parent
    return [pid for pid, parent in found.items() if parent not in found]  # a child is called so too for a moment


@dataclass(frozen=True, slots=True)
class NormalUser:
    """An unprivileged account, with a Python it can run and our packages on its path."""

    uid: int
    gid: int
    python: str

    def command(self, *arguments: str | Path) -> list[str]:
        return [self.python, *map(str, arguments)]

    def environment(self, **extra: str) -> dict[str, str]:
        path = os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])
        return {"PATH": os.defpath, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **extra}

    def run_python(self, code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command("-c", code, *arguments),
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            env=self.environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )


def as_normal_user() -> NormalUser:
    """Skips, with a reason, where no other account can run this Python or read these files."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("this machine has no account “nobody”")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in filter(None, [sys.executable, shutil.which(version, path=os.defpath)]):
        user = NormalUser(entry.pw_uid, entry.pw_gid, python)
        try:
            ran = user.run_python("import django, psycopg, klerai.postgres")
        except PermissionError:
            continue
        if ran.returncode == 0:
            return user
    pytest.skip(f"the account “nobody” cannot run a {version} with this repository's packages")
