"""The folder a server lives in: its cluster, socket, passwords, log and locks."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from klerai.postgres.account import Account, account_for
from klerai.postgres.binaries import SHARED_PLACE
from klerai.postgres.errors import NotOurs, NotWritable, PasswordsLost

_LONGEST_SOCKET_PATH = 103  # macOS; Linux has 107
_PLAIN_PATH = re.compile(r"[\w/.+@-]+", re.ASCII)
_SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything is; nothing is made before `settle`."""

    path: Path

    @property
    def cluster(self) -> Path:
        return self.path / "data"

    @property
    def passwords(self) -> Path:
        return self.path / "passwords"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def prepared(self) -> Path:
        """Exists once roles and database do; a cluster without it holds nothing of anybody."""
        return self.path / "prepared"

    @property
    def sockets(self) -> Path:
        """Beside the cluster, or a short private folder when that path is too long or odd for a socket."""
        near = self.path / "run"
        if len(os.fsencode(near / _SOCKET)) <= _LONGEST_SOCKET_PATH and _PLAIN_PATH.fullmatch(str(near)):
            return near
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:20]
        return Path("/tmp", f"klerai-{digest}")

    def make_data_dir(self) -> None:
        """Private, but for the way through that another account needs to reach the cluster."""
        self.path.parent.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)

    def settle(self) -> Account:
        """Make the folder and say who runs the server in it; asked for under `starting_or_stopping`."""
        if not self.path.exists():
            self.path.mkdir(mode=0o700)
        account = account_for(self.cluster)
        if account.is_other and not account.can_enter(self.path.resolve()):
            self.path.chmod(0o711)
            if not account.can_enter(self.path.resolve()) and not self.is_in_use():
                self._move(account)
        self._make_private(self.cluster, account)
        self._make_private(self.sockets, account)
        return account

    def open_private(self, name: str, flags: int = os.O_RDWR) -> int:
        """A descriptor of a file only this folder's owner reads, also when root makes it."""
        descriptor = os.open(self.path / name, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if os.geteuid() == 0:
            _give_to_owner_of(self.path, descriptor)
        return descriptor

    @contextmanager
    def starting_or_stopping(self) -> Iterator[None]:
        """Only one process at a time starts or stops the server; the lock outlives a move of the folder."""
        self.make_data_dir()
        descriptor = os.open(self.path.parent / "start.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if os.geteuid() == 0:
                _give_to_owner_of(self.path.parent, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def claim_cluster(self) -> int | None:
        """A descriptor to hand to the server, which holds it as long as any of its processes lives.

        None when a server holds it now, whoever started it and whatever its pid file says.
        """
        descriptor = self.open_private("server.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_in_use(self) -> bool:
        claim = self.claim_cluster()
        if claim is None:
            return True
        os.close(claim)
        return False

    def forget_the_dead(self) -> None:
        """Remove what a killed server left; whoever holds the claim knows that none of its processes lives."""
        for path in (self.cluster / "postmaster.pid", self.sockets / _SOCKET, self.sockets / f"{_SOCKET}.lock"):
            path.unlink(missing_ok=True)

    def leave_no_folder_elsewhere(self) -> None:
        if self.sockets.parent != self.path:
            with suppress(OSError):
                self.sockets.rmdir()

    def password_of(self, role: str) -> str:
        try:
            lines = self.passwords.read_text().splitlines()
        except FileNotFoundError:
            raise PasswordsLost(self.passwords) from None
        for line in lines:
            *_, name, password = line.split(":")
            if name == role:
                return password
        raise PasswordsLost(self.passwords)

    def make_passwords(self, roles: tuple[str, ...]) -> None:
        text = "".join(f"*:*:*:{role}:{secrets.token_urlsafe(32)}\n" for role in roles)
        with os.fdopen(self.open_private("passwords.new", os.O_WRONLY | os.O_TRUNC), "w") as out:
            out.write(text)
        os.replace(self.path / "passwords.new", self.passwords)

    def _move(self, account: Account) -> None:
        """Copy the folder to where `account` can reach it and leave a link; nothing is opened up for it."""
        SHARED_PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=SHARED_PLACE, prefix="database-"))
        place.chmod(0o711)
        if not account.can_enter(place):
            place.rmdir()
            raise NotWritable(self.path, reason=f"PostgreSQL’s account cannot reach it, nor {SHARED_PLACE}")
        shutil.copytree(self.path, place, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".s.PGSQL*"))
        for path in (*self.cluster.rglob("*"), self.cluster):
            copy = place / path.relative_to(self.path)
            if copy.exists():
                os.chown(copy, account.uid, account.gid)
        place.chmod(0o711)
        aside = self.path.with_name("postgres.before-move")
        self.path.rename(aside)
        self.path.symlink_to(place)
        if not any((aside / "data").glob("*")):
            shutil.rmtree(aside)
        print(f"The database lives in {place}: PostgreSQL’s account cannot reach {self.path.parent}.", file=sys.stderr)

    def _make_private(self, folder: Path, account: Account) -> None:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (account.uid, os.geteuid()):
            raise NotOurs(folder, owner=str(found.st_uid))
        if found.st_uid != account.uid:
            account.give(folder)


def _give_to_owner_of(folder: Path, descriptor: int) -> None:
    """So that what root makes in somebody's folder stays usable by them."""
    owner = folder.stat()
    os.fchown(descriptor, owner.st_uid, owner.st_gid)
