"""The process workers are forked from that die at their work: `python -m tests.harness.applying`.

It reads one wish a line, `{"event": id, "failpoint": name}`, works the announcement off in a child, and answers with
the child's exit code: negative for a signal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import django

from tests.processes import REPOSITORY


@dataclass(slots=True)
class Workers:
    """Workers, one at a time, each for one announcement."""

    process: subprocess.Popen[str]

    def work_off(self, event_id: str, *, failpoint: str) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"event": event_id, "failpoint": failpoint}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def doomed_workers(environment: dict[str, str]) -> Iterator[Workers]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.applying"],
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Workers(process)
    finally:
        process.terminate()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    django.setup()
    import billing.inbox
    import billing.stripe_gateway  # noqa: F401  once for all, as it is not light

    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _work_off(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _work_off(wish: dict[str, Any]) -> NoReturn:
    from billing import inbox

    os.environ["KLERAI_FAILPOINT"] = wish["failpoint"]
    code = 1
    try:
        inbox.apply(wish["event"])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
