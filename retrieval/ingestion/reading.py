"""Reading a file of a stranger: in a child process that may take so much memory and time and no more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from retrieval.errors import UnreadableFile
from retrieval.ingestion.chunking import Span
from retrieval.ingestion.confinement import WALL_SECONDS

MOST_OUTPUT = 128_000_000  # bytes: 20 million characters and where the passages are
TOO_SLOW = f"Reading the file took longer than {WALL_SECONDS} seconds. Split it, or save it in a simpler form."
FAILED = "The file could not be read: it is damaged, or made to break what reads it."

_ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = {"PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "1"}
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a file and the passages in it."""

    text: str
    media_type: str
    spans: tuple[Span, ...]


def read_confined(file: BinaryIO, name: str, *, seconds: float = WALL_SECONDS) -> Reading:
    """`file` has a descriptor of its own, and is read from its beginning. Raises UnreadableFile.

    Blocks for `seconds` at most. Nothing of the child outlives the call.
    """
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    command = [sys.executable, "-s", "-B", "-m", "retrieval.ingestion.child", name]
    with subprocess.Popen(
        command,
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        env=_environment(),
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        ended = _Deadline(child.pid, seconds)
        try:
            output = child.stdout.read(MOST_OUTPUT + 1)
            if len(output) <= MOST_OUTPUT:
                child.wait()
        finally:
            ended.cancel()
            if child.returncode is None:
                _kill_group(child.pid)
    return _parsed(output, is_late=ended.has_struck, code=child.returncode)


def _environment() -> dict[str, str]:
    """Nothing of ours, which holds secrets, but where the libraries are."""
    found = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {**_SETTINGS, **found, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class _Deadline:
    """Kills the child's whole group when its time is over."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self.has_struck = False
        self._timer = threading.Timer(seconds, self._strike)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        self._timer.join()

    def _strike(self) -> None:
        self.has_struck = True
        _kill_group(self._pid)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _parsed(output: bytes, *, is_late: bool, code: int) -> Reading:
    if is_late or -code in {signal.SIGXCPU, signal.SIGALRM}:
        raise UnreadableFile(TOO_SLOW)
    line, found, text = output.partition(b"\n")
    if code or not found or len(output) > MOST_OUTPUT:
        logger.warning("reader_failed", exit_code=code, bytes=len(output))
        raise UnreadableFile(FAILED)
    said = json.loads(line)
    if "error" in said:
        raise UnreadableFile(said["error"])
    spans = tuple(Span(start, end, section, page) for start, end, section, page in said["spans"])
    return Reading(text.decode(), said["media_type"], spans)
