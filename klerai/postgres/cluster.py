"""What is inside the data folder of PostgreSQL: made once, given roles and a database, upgraded when it is old."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from klerai.postgres.account import Account
from klerai.postgres.binaries import current, reachable_by
from klerai.postgres.errors import UnknownVersion, complaint
from klerai.postgres.home import Home

SUPERUSER, OWNER, APP = "klerai_admin", "klerai_owner", "klerai_app"
DATABASE = "klerai"

_INITDB = ("--auth=scram-sha-256", f"--username={SUPERUSER}", "--encoding=UTF8", "--locale=C", "--no-instructions")
_LOCALE = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")


_NO_CHECKSUMS = re.compile(r"^Data page checksum version: +0$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cluster:
    home: Home
    account: Account

    def program(self, name: str) -> Path:
        return reachable_by(self.account)[current()] / name

    def bring_up_to_date(self) -> None:
        """Have a cluster this PostgreSQL can start; only while no server runs on it."""
        if not self.home.prepared.exists():
            self._make()
            return
        version = self.home.cluster / "PG_VERSION"
        if not version.exists():
            self._take_back()
        made_by = version.read_text().strip()
        if made_by == str(current()):
            return
        if not made_by.isdigit() or int(made_by) not in reachable_by(self.account) or int(made_by) > current():
            raise UnknownVersion(self.home.cluster, version=made_by)
        self._upgrade(int(made_by), current())

    @property
    def is_prepared(self) -> bool:
        return self.home.prepared.exists() and self.home.prepared.read_text() == str(current())

    def prepare(self) -> None:
        """Roles, the database, and who may do what in it; asked for once, or again after an interruption."""
        with self._connected("postgres") as db:
            for role, rights in ((OWNER, "LOGIN CREATEDB"), (APP, "LOGIN")):
                if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                    db.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
                db.execute(
                    sql.SQL(f"ALTER ROLE {{}} {rights} PASSWORD {{}}").format(
                        sql.Identifier(role), sql.Literal(self.home.password_of(role))
                    )
                )
        with self._connected("template1") as db:  # every database made later starts as a copy of this one
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
            for rights in (
                "SELECT, INSERT, UPDATE, DELETE ON TABLES",
                "USAGE, SELECT ON SEQUENCES",
                "EXECUTE ON FUNCTIONS",
            ):
                db.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} GRANT {rights} TO {APP}")
        with self._connected("postgres") as db:
            if not db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                db.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        for database in ("template1", DATABASE):
            with self._connected(database) as db:
                db.execute("ALTER EXTENSION vector UPDATE")
        with os.fdopen(self.home.open_private("prepared", os.O_WRONLY | os.O_TRUNC), "w") as out:
            out.write(str(current()))

    def _make(self) -> None:
        """A new cluster; leftovers of an interrupted attempt hold nothing of anybody and go first."""
        self._empty(self.home.cluster)
        self.home.make_passwords((SUPERUSER, OWNER, APP))
        self._initdb(self.home.cluster.resolve(), current())

    def _initdb(self, target: Path, major: int, *extra: str) -> None:
        descriptor, name = tempfile.mkstemp(dir=self.home.sockets.resolve())
        password = Path(name)
        try:
            os.write(descriptor, self.home.password_of(SUPERUSER).encode())
            self.account.give(password)
            locale = _LOCALE if major > 16 else ()
            self._run(major, "initdb", *_INITDB, *locale, *extra, f"--pwfile={password}", f"--pgdata={target}")
        finally:
            os.close(descriptor)
            password.unlink()

    def _upgrade(self, old: int, new: int) -> None:
        """Copy the old cluster into a new one; the old one stays beside it."""
        print(f"The database is upgraded from PostgreSQL {old} to {new}.", file=sys.stderr)
        programs = reachable_by(self.account)
        control = self._run(old, "pg_controldata", self.home.cluster.resolve())
        checksums = "--no-data-checksums" if _NO_CHECKSUMS.search(control) else "--data-checksums"
        with tempfile.TemporaryDirectory(dir=self.home.path.resolve(), prefix="upgrade-") as work:
            self.account.give(Path(work))
            fresh = Path(work) / "data"
            self._initdb(fresh, new, checksums)
            self._run(
                new,
                "pg_upgrade",
                f"--old-bindir={programs[old]}",
                f"--old-datadir={self.home.cluster.resolve()}",
                f"--new-datadir={fresh}",
                f"--socketdir={self.home.sockets.resolve()}",
                f"--username={SUPERUSER}",
                cwd=Path(work),
            )
            kept = self._kept(old)
            shutil.rmtree(kept, ignore_errors=True)
            self.home.cluster.rename(kept)
            fresh.rename(self.home.cluster)
        print(f"The old files stay in {kept} until you remove them.", file=sys.stderr)

    def _take_back(self) -> None:
        """An upgrade was interrupted between its last two steps: start it over from the old files."""
        for major in sorted(reachable_by(self.account), reverse=True):
            if self._kept(major).exists():
                self.home.cluster.rmdir()
                self._kept(major).rename(self.home.cluster)
                return

    def _kept(self, major: int) -> Path:
        return self.home.path / f"data-{major}"

    def _run(self, major: int, program: str, *arguments: str | Path, cwd: Path = Path("/")) -> str:
        command = (reachable_by(self.account)[major] / program, *arguments)
        secret = {"PGPASSWORD": self.home.password_of(SUPERUSER)}
        done = self.account.run(command, env=secret, cwd=cwd)
        if done.returncode:
            raise complaint(program, done.stdout, self.home.path.parent)
        return done.stdout

    def _connected(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.home.sockets),
            port=5432,
            dbname=database,
            user=SUPERUSER,
            password=self.home.password_of(SUPERUSER),
            sslmode="disable",
            autocommit=True,
        )

    @staticmethod
    def _empty(folder: Path) -> None:
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
