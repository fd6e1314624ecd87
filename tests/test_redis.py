"""Two processes and Redis between them: what one does, the other shows at once; without Redis nothing is lost."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import says
from tests.harness.doors import by_key
from tests.harness.frames import last_turn, logged, run_row
from tests.harness.soundness import charged, nothing_breaks
from tests.serving import server_process, vendor_environment, wait_until

LONG = " ".join(f"word{number}" for number in range(150))
pytestmark = [pytest.mark.redis, pytest.mark.xdist_group("redis")]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A Redis of this test's own and its address."""
    program = shutil.which("redis-server")
    if program is None:
        reason = "redis-server is not installed, so what needs it was not tested"
        if os.environ.get("KLERAI_REQUIRE_REDIS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port), what="redis-server")
        yield process, f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.thorough
def test_a_viewer_on_another_process_sees_a_run_as_it_goes_and_loses_nothing_when_redis_dies(
    redis: tuple[subprocess.Popen[bytes], str], anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    process, address = redis
    anthropic_fake.script(says(LONG, each_ms=15), forever=True)
    environment = {**vendor_environment(anthropic_fake.url), "REDIS_URL": address}
    with nothing_breaks(), ExitStack() as stack:
        here = stack.enter_context(server_process(tmp_path, name="here", **environment))
        there = stack.enter_context(server_process(tmp_path, name="there", **environment))
        asker = stack.enter_context(by_key(here.url))
        viewer = stack.enter_context(by_key(there.url, asker.person))

        with_redis = str(uuid.uuid4())
        with asker.asking("Tell me.", run_id=with_redis) as asked:
            first = next(asked)
            with viewer.watching(with_redis) as watched:
                seen = [next(watched)]
                assert run_row(with_redis).is_live
                seen += list(watched)
            assert [first, *asked] == seen == logged(with_redis)

        without_redis = str(uuid.uuid4())
        with asker.asking("Tell me again.", run_id=without_redis) as asked, viewer.socket() as tab:
            first = next(asked)
            tab.send({"type": "resume", "run_id": without_redis, "last_seq": 0})
            frames = tab.frames()
            seen = [next(frames)]
            process.kill()
            process.wait()
            seen += list(frames)
            assert [first, *asked] == seen == logged(without_redis)
        assert last_turn(seen) == LONG
        assert charged(run_row(with_redis)) == charged(run_row(without_redis)) == 5

        with viewer.socket() as tab:
            run_id = tab.ask("Once more.")
            assert list(tab.frames()) == logged(run_id)
        assert viewer.stop(run_id).status_code == 200
