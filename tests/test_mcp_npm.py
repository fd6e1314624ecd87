"""The reference servers of npm in a run: over pipes and over HTTP, with progress, refusals and a death in mid-call."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat.mcp.specs import Address, Process, ServerSpec
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.calling import told
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.mcp import serving_with
from tests.harness.node import npm_server
from tests.serving import wait_until

pytestmark = pytest.mark.xdist_group("npm")
SLOW = Call("everything__trigger-long-running-operation", {"duration": 60, "steps": 60})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("npm")


@pytest.fixture(scope="module")
def workshop(database: object, anthropic_server: AnthropicFake, folder: Path) -> Iterator[str]:
    specs = (
        ServerSpec("everything", Process(npm_server("everything"))),
        ServerSpec("files", Process(npm_server("filesystem"), (str(folder),))),
        ServerSpec("memory", Process(npm_server("memory"), env={"MEMORY_FILE_PATH": str(folder / "memory.json")})),
    )
    with serving_with(anthropic_server, *specs) as url:
        yield url


@pytest.fixture(scope="module")
def http_workshop(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    """The same server of everything behind an address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [npm_server("everything"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _answers(port), what="the server of everything")
        with serving_with(anthropic_server, ServerSpec("away", Address(f"http://127.0.0.1:{port}/mcp"))) as url:
            yield url
    finally:
        process.kill()
        process.wait()


@pytest.mark.thorough
def test_a_run_is_offered_the_tools_of_every_server_and_uses_them_side_by_side(
    workshop: str, anthropic_fake: AnthropicFake, folder: Path
) -> None:
    wanted = (
        Call("everything__echo", {"message": "hello"}),
        Call("files__write_file", {"path": str(folder / "note.txt"), "content": "written"}),
        Call("memory__read_graph", {}),
    )
    seen = told(workshop, anthropic_fake, *wanted)
    assert seen.texts[0] == "Echo: hello"
    assert (folder / "note.txt").read_text() == "written"
    assert '"entities": []' in seen.texts[2]
    assert seen.items == [("base", 5), ("tool", 2), ("tool", 2), ("tool", 2)]
    names = [tool["name"] for tool in anthropic_fake.requests()[0]["body"]["tools"]]
    assert names[0] == "calculator"
    assert {name.partition("__")[0] for name in names if "__" in name} == {"everything", "files", "memory"}


def test_what_is_not_text_is_named_and_structured_content_is_told_once(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    wanted = (
        Call("everything__get-tiny-image", {}),
        Call("everything__get-structured-content", {"location": "New York"}),
    )
    image, weather = told(workshop, anthropic_fake, *wanted).texts
    assert "[image, image/png, " in image
    assert weather.count("temperature") == 1


def test_a_refusal_of_the_server_is_told_to_the_model_and_costs_nothing(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    seen = told(workshop, anthropic_fake, Call("files__read_text_file", {"path": "/etc/passwd"}))
    assert "outside allowed directories" in seen.texts[0]
    assert seen.items == [("base", 5), ("failed", 0)]


@pytest.mark.thorough
def test_how_far_a_call_is_stands_beside_its_name_while_it_runs(workshop: str, anthropic_fake: AnthropicFake) -> None:
    slow = Call("everything__trigger-long-running-operation", {"duration": 1, "steps": 4})
    seen = told(workshop, anthropic_fake, slow)
    said = [update.data["message"] for update in of_type(seen.frames, "status_update")]
    label = "everything: Trigger Long Running Operation Tool"
    assert f"{label}: 1 of 4" in said
    order = [frame.data.get("message") or frame.type for frame in seen.frames]
    assert order.index("tool_call_start") < order.index(f"{label}: 1 of 4") < order.index("tool_call_result")
    assert seen.texts[0].startswith("Long running operation completed.")


@pytest.mark.thorough
def test_a_server_killed_in_mid_call_is_a_tool_error_and_the_next_call_works(
    workshop: str, anthropic_fake: AnthropicFake
) -> None:
    anthropic_fake.script(calls(SLOW), calls(Call("everything__echo", {"message": "back"})), says("Done."))
    with by_key(workshop) as alice, alice.asking("Take long.") as events:
        frames = []
        for frame in events:
            frames.append(frame)
            if frame.type == "status_update" and "1 of 60" in frame.data["message"]:
                os.kill(_pid_of("mcp-server-everything"), signal.SIGKILL)
    died, back = of_type(frames, "tool_call_result")
    assert died.data["error"] == (
        "The server everything could not do this. "
        "It ended in the middle of this call, so what the call did is not known."
    )
    assert died.data["duration_ms"] < 10_000
    assert (back.data["ok"], back.data["summary"]) == (True, "Echo: back")
    assert frames[-1].data["receipt"]["credits"] == 5 + 2


@pytest.mark.thorough
def test_the_same_server_works_over_http(http_workshop: str, anthropic_fake: AnthropicFake) -> None:
    slow = Call("away__trigger-long-running-operation", {"duration": 1, "steps": 2})
    seen = told(http_workshop, anthropic_fake, Call("away__get-sum", {"a": 2, "b": 3}), slow)
    assert seen.texts[0] == "The sum of 2 and 3 is 5."
    assert "away: Trigger Long Running Operation Tool: 1 of 2" in [
        update.data["message"] for update in of_type(seen.frames, "status_update")
    ]


def _answers(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def _pid_of(program: str) -> int:
    """The newest child of this process that runs it."""
    found = subprocess.run(
        ["pgrep", "-n", "-P", str(os.getpid()), "-f", program], capture_output=True, text=True, check=True
    )
    return int(found.stdout)
