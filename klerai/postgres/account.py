"""Who runs the server's programs: this account, or an unprivileged one when this one is root."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from klerai.postgres.errors import NoAccount, NotOurs

_UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int
    is_other: bool

    def run(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        output: int = subprocess.PIPE,
        keep_open: tuple[int, ...] = (),
        cwd: str | Path = "/",
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end in a session of its own, so that a Ctrl-C at the terminal does not reach it."""
        return subprocess.run(
            [str(word) for word in command],
            env={"PATH": os.defpath, "LC_ALL": "C", **(env or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            start_new_session=True,
            pass_fds=keep_open,
            check=False,
            umask=0o077,
            user=self.uid if self.is_other else None,
            group=self.gid if self.is_other else None,
            extra_groups=[] if self.is_other else None,
        )

    def can_enter(self, directory: Path) -> bool:
        return self.run(["/bin/sh", "-c", 'cd "$0"', directory]).returncode == 0

    def can_run(self, program: Path) -> bool:
        try:
            return self.run([program, "--version"]).returncode == 0
        except PermissionError:
            return False

    def give(self, path: Path) -> None:
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def account_for(cluster: Path) -> Account:
    """Who may run the server on `cluster`: its owner if it exists, else whoever this process should use."""
    try:
        owner: int | None = cluster.stat().st_uid
    except FileNotFoundError:
        owner = None
    if os.geteuid() != 0:
        if owner not in (None, os.geteuid()):
            raise NotOurs(cluster, owner=_name_of(owner))
        return Account(os.geteuid(), os.getegid(), is_other=False)
    if owner:
        return Account(owner, cluster.stat().st_gid, is_other=True)
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, is_other=True)
    raise NoAccount


def _name_of(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        return str(uid)
