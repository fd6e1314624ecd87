"""Servers that are made to die: forked from a process that has imported everything, so that each costs no start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import REPOSITORY
from tests.serving import command_environment, wait_until


@dataclass(slots=True)
class Nursery:
    """One process to fork servers from, one at a time."""

    process: subprocess.Popen[str]
    folder: Path
    count: int = 0

    @contextmanager
    def doomed(self, failpoint: str) -> Iterator[Doomed]:
        """A server that kills itself at the failpoint, at the latest at the end of the block."""
        self.count += 1
        log = self.folder / f"{self.process.pid}-{self.count}.log"
        log.touch()
        self._tell({"log": str(log), "environment": {"KLERAI_FAILPOINT": failpoint}})
        server = Doomed(self, int(self._hear()), log)
        try:
            wait_until(server.has_started, what=f"{log} to say where it serves")
            yield server
        finally:
            server.end()

    def _tell(self, wish: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()

    def _hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@dataclass(slots=True)
class Doomed:
    """A server with a failpoint. `exit_code` is known once it has ended, negative for a signal."""

    nursery: Nursery
    pid: int
    log: Path
    exit_code: int | None = None
    url: str = ""

    def has_started(self) -> bool:
        _, found, rest = self.log.read_text().partition("Serving at ")
        self.url = rest.split()[0].strip('",') if found and "\n" in rest else ""
        return bool(self.url)

    def wait(self) -> int:
        """Until it has died of itself."""
        if self.exit_code is None:
            self.exit_code = int(self.nursery._hear())
        return self.exit_code

    def end(self) -> int:
        """Ask it to end, if it still runs."""
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
        return self.wait()


@contextmanager
def nursery(folder: Path, **environment: str) -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.forking"],
        cwd=REPOSITORY,
        env=command_environment(**environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Nursery(process, folder)
    finally:
        process.terminate()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
