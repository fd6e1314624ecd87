"""The walls around the process that reads files of strangers."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

MEMORY_BYTES = 512 * 2**20
CPU_SECONDS = 25
WALL_SECONDS = 25
OPEN_FILES = 64

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_DIE_WITH_PARENT = 1
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill")


class Forbidden(BaseException):
    """Not an Exception, so that no parser takes it for a page that is damaged."""


def confine() -> None:
    """Take from this process what reading a file does not need: memory and time without end, files, the network.

    Where the system allows it the network itself is gone; everywhere Python refuses to open a socket or a process.
    """
    os.nice(10)  # people who wait for a page go first
    signal.alarm(WALL_SECONDS + 2)  # if whoever should stop us is gone
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    if sys.platform == "linux":
        _leave_network()
    with suppress(ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.addaudithook(_refuse)


def _leave_network() -> None:
    """Best effort: containers often forbid it."""
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if system.unshare(_NEW_NETWORK) != 0 and os.geteuid() != 0:
        system.unshare(_NEW_USER | _NEW_NETWORK)


def _refuse(event: str, arguments: object) -> None:
    if event.startswith(_FORBIDDEN):
        raise Forbidden(event)
