"""Places where a test may kill the process: each is nothing unless KLERAI_FAILPOINT names it."""

from __future__ import annotations

import itertools
import os
import signal

_NAME, _, _COUNT = os.environ.get("KLERAI_FAILPOINT", "").partition(":")
_PASSES = itertools.count(1)


def failpoint(name: str) -> None:
    """Kill the process the n-th time it passes here, when the environment says `KLERAI_FAILPOINT=name:n`."""
    if name == _NAME and next(_PASSES) == int(_COUNT or 1):
        os.kill(os.getpid(), signal.SIGKILL)
