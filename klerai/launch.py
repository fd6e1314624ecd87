"""What happens before Django: which settings, which data directory, which database, and a server for it."""

from __future__ import annotations

import argparse
import atexit
import ipaddress
import os
import signal
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from klerai.database_address import Unreachable, check_address, parse_address
from klerai.env import BadSetting, Environment, load_dotenv
from klerai.instance import Refused
from klerai.postgres import APP, OWNER, EmbeddedServer, PostgresError

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000

_CHANGE_TABLES = frozenset(
    {"migrate", "makemigrations", "squashmigrations", "optimizemigration", "sqlmigrate", "sqlflush"}
    | {"flush", "restore", "dbshell"}
)
_NEED_NO_DATABASE = frozenset(
    {"help", "version", "diffsettings", "spectacular", "startapp"}
    | {"collectstatic", "findstatic", "compilemessages", "makemessages"}
)
_DEPLOYED = frozenset({"serve", "worker"})
_NO_SUCH_TABLE = "42P01"
_NO_TABLES = (
    "This database has no tables for this yet. “manage.py up” makes them as it starts, and “manage.py migrate” alone."
)


@dataclass(frozen=True, slots=True)
class Invocation:
    """The command line as far as it decides what Django will find."""

    command: str
    arguments: tuple[str, ...]
    host: str
    data: str | None

    @property
    def is_local_address(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def needs_database(self) -> bool:
        asks_for_help = not self.command or {"-h", "--help", "--version"} & {self.command, *self.arguments}
        if asks_for_help or self.command in _NEED_NO_DATABASE:
            return False
        if self.command == "check":
            return "--database" in self.arguments
        return self.command != "up"  # which first sees whether it may start at all

    @property
    def role(self) -> str:
        return OWNER if self.command in _CHANGE_TABLES else APP


def launch(argv: Sequence[str], *, env_file: Path) -> int:
    """Run one command of manage.py. What a person can put right is one sentence on stderr and exit code 1."""
    try:
        load_dotenv(env_file, os.environ)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "klerai.settings")
        invocation = read_command_line(argv[1:])
        server = arrange(invocation, os.environ, default_data_dir=env_file.with_name(".klerai"))
        with running(server) if server and invocation.needs_database else nullcontext():
            if invocation.needs_database:
                check_address(os.environ["DATABASE_URL"])
            _run_django(argv, server)
    except (BadSetting, PostgresError, Unreachable, Refused) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def add_up_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `up`; read here before Django starts and by the command itself after."""
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="default 8000; 0 picks a free one")
    parser.add_argument("--host", default=DEFAULT_HOST, help="default 127.0.0.1; any other turns local mode off")
    parser.add_argument("--data", metavar="DIR", help="where everything is kept (default .klerai, KLERAI_DATA_DIR)")
    parser.add_argument("--no-demo", action="store_true", help="make no demo accounts and load no user guide")


def read_command_line(arguments: Sequence[str]) -> Invocation:
    command, rest = (arguments[0], tuple(arguments[1:])) if arguments else ("", ())
    if command != "up" or {"-h", "--help"} & set(rest):
        return Invocation(command, rest, host=DEFAULT_HOST, data=None)
    parser = argparse.ArgumentParser(prog="manage.py up", add_help=False)
    add_up_arguments(parser)
    known, _ = parser.parse_known_args(rest)
    return Invocation(command, rest, host=known.host, data=known.data)


def arrange(
    invocation: Invocation, environment: MutableMapping[str, str], *, default_data_dir: Path
) -> EmbeddedServer | None:
    """Write into `environment` what the settings will read; the server to start, if it is the embedded one."""
    chosen = invocation.data or environment.get("KLERAI_DATA_DIR", "").strip() or default_data_dir
    data_dir = Path(chosen).expanduser().resolve()
    environment["KLERAI_DATA_DIR"] = str(data_dir)

    given = Environment(environment).secret("DATABASE_URL")
    environment["DATABASE_URL"] = given or EmbeddedServer(data_dir).url(invocation.role)
    parse_address(environment["DATABASE_URL"])
    server = embedded_server(environment)
    environment.pop("KLERAI_LOCAL", None)
    is_local = _is_local(invocation, is_embedded=server is not None, data_dir=data_dir)
    if is_local:
        environment["KLERAI_LOCAL"] = "1"
    if is_local or invocation.command == "up":
        EmbeddedServer(data_dir).make_data_dir()
    return server


def embedded_server(environment: Mapping[str, str]) -> EmbeddedServer | None:
    """The server of the data directory, unless DATABASE_URL names another one."""
    server = EmbeddedServer(Path(environment["KLERAI_DATA_DIR"]))
    return server if environment["DATABASE_URL"] in (server.url(APP), server.url(OWNER)) else None


def _is_local(invocation: Invocation, *, is_embedded: bool, data_dir: Path) -> bool:
    match invocation.command:
        case "up":
            return invocation.is_local_address
        case command if command in _DEPLOYED:
            return False
        case "check":
            return is_embedded and (data_dir / "secret_key").exists()
    return is_embedded


@contextmanager
def running(server: EmbeddedServer) -> Iterator[None]:
    """The server runs inside, and is stopped on every way out that leaves us a say."""
    signal.signal(signal.SIGTERM, _leave)
    atexit.register(server.stop)
    try:
        server.start()
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server.stop()


def _run_django(argv: Sequence[str], server: EmbeddedServer | None) -> None:
    from django.core.management import execute_from_command_line  # only now, since it reads the environment
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(list(argv))
    except ProgrammingError as error:
        if getattr(error.__cause__, "sqlstate", "") == _NO_SUCH_TABLE:
            raise Refused(_NO_TABLES) from error
        raise
    except OperationalError as error:
        if server and (trouble := server.trouble(str(error))):
            raise trouble from error
        raise


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + signum)
