"""Places where a test may kill the process: each is nothing unless KLERAI_FAILPOINT names it."""

from __future__ import annotations

import itertools
import os
import signal
from functools import cache

_PASSES = itertools.count(1)


def failpoint(name: str) -> None:
    """Kill the process the n-th time it passes here, when the environment says `KLERAI_FAILPOINT=name:n`."""
    armed, at = _armed()
    if name == armed and next(_PASSES) == at:
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def _armed() -> tuple[str, int]:
    """Read at the first pass, not at import, so that a process can be made ready before it is told where to die."""
    name, _, count = os.environ.get("KLERAI_FAILPOINT", "").partition(":")
    return name, int(count or 1)
