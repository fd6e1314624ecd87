"""A real `manage.py` in a process of its own, as a person at a terminal has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.processes import REPOSITORY, NormalUser

READY = "KlerAI is ready: "
_PATIENCE_SECONDS = 90
_MANAGE = REPOSITORY / "manage.py"


def plain_environment(**extra: str) -> dict[str, str]:
    """What a fresh terminal has: nothing of ours, and nothing of the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    return {**kept, "KLERAI_STRATEGY": "offline", **extra}


def manage(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    return subprocess.run(
        [sys.executable, str(_MANAGE), *map(str, arguments)],
        env=plain_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def background(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """One command that runs until it is asked to stop, at the latest at the end."""
    process = subprocess.Popen([sys.executable, str(_MANAGE), *arguments], env=plain_environment(**environment))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


@dataclass(slots=True)
class Up:
    """A running `up`. `lines` is what it printed so far on stdout; the log is read when it is needed."""

    process: subprocess.Popen[str]
    log: IO[str]
    lines: list[str]

    @property
    def url(self) -> str:
        return self.lines[0].removeprefix(READY)

    def errors(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def press_ctrl_c(self) -> None:
        """To the whole group, as a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for it; returns the exit code. One that does not end is killed, so that the tests do."""
        try:
            said, _ = self.process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, _ = self.process.communicate()
        self.lines += said.splitlines()
        return self.process.returncode


@contextmanager
def up(
    data_dir: Path, *options: str, user: NormalUser | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Up]:
    """Inside, it is ready, or it has ended and `lines` is empty; after, it was asked to stop and did."""
    arguments = (_MANAGE, "up", "--port", "0", "--data", data_dir, *options)
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            user.command(*arguments) if user else [sys.executable, *map(str, arguments)],
            env=(user.environment if user else plain_environment)(**(environment or {})),
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=[] if user else None,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        running = Up(process, log, [])
        assert process.stdout is not None
        try:
            while line := process.stdout.readline():
                running.lines.append(line.rstrip("\n"))
                if "password" in line or ("--no-demo" in options and line.startswith(READY)):
                    break
            yield running
        finally:
            if process.poll() is None:
                process.terminate()
                running.end()
            process.stdout.close()
