"""The fake Messages server as a test holds it: its address, its scripts and what it was asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

import orjson
import pytest

from tests.fakes.anthropic_script import Turn, to_json

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = "/v1/messages"


class AnthropicFake:
    """A running fake. `script(…, key=…)` answers only requests whose person's words hold the key."""

    path = MESSAGES

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(ProxyHandler({}))

    def script(self, *turns: Turn, key: str = "", forever: bool = False) -> None:
        """The next turns, in order; with `forever` the last one is repeated."""
        self._ask("/_script", [{"key": key, "turns": [to_json(turn) for turn in turns], "forever": forever}])

    def script_many(self, turns: Mapping[str, Turn]) -> None:
        """One turn for each key."""
        scripts = [{"key": key, "turns": [to_json(turn)], "forever": False} for key, turn in turns.items()]
        self._ask("/_script", scripts)

    def requests(self, key: str | None = None) -> list[dict[str, Any]]:
        """What was asked of the model, oldest first; with a key only what carried it."""
        found = self._ask("/_requests" + (f"?key={quote(key)}" if key else ""))
        return [seen for seen in found if seen["path"] == self.path]

    def summaries(self) -> list[dict[str, Any]]:
        """What was asked for memory's sake: one call for the summaries of a run."""
        return self.requests("write_summaries")

    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("/_stats")
        return found

    def reset(self) -> None:
        self._ask("/_reset", {})

    def _ask(self, path: str, body: Any = None) -> Any:
        sent = Request(self.url + path, data=None if body is None else orjson.dumps(body))
        with self._opener.open(sent, timeout=10) as response:
            return orjson.loads(response.read())


@contextmanager
def running_anthropic(*, each_ms: float = 0) -> Iterator[AnthropicFake]:
    """A fake in a process of its own, for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.fakes.anthropic_server", "--port", "0", "--each-ms", str(each_ms)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), "the fake Messages server did not start"
        yield AnthropicFake(address)
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="session")
def anthropic_server() -> Iterator[AnthropicFake]:
    """One fake for all the tests of this process."""
    with running_anthropic() as fake:
        yield fake


@pytest.fixture
def anthropic_fake(anthropic_server: AnthropicFake) -> Iterator[AnthropicFake]:
    """The fake with no script and nothing recorded; what the test did not use is not left to the next one."""
    anthropic_server.reset()
    yield anthropic_server
    anthropic_server.reset()
