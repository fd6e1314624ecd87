"""MCP servers for tests, the runtime that uses them, and what they wrote into their journals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.test import override_settings

from chat.mcp.configuration import GitHubSettings, McpSettings
from chat.mcp.servers import Servers
from chat.mcp.specs import Process, ServerSpec
from chat.tools.base import Tool
from chat.wiring import Runtime
from tests.fakes.anthropic import AnthropicFake
from tests.processes import REPOSITORY
from tests.serving import served, vendor_settings

PATIENCE_SECONDS = 20
NOWHERE = "http://127.0.0.1:9/mcp"  # so that no test can reach GitHub itself


def our_server(module: str, *arguments: str, **env: str) -> Process:
    """One of our fakes, over its pipes."""
    return Process(sys.executable, ("-m", f"tests.fakes.{module}", *arguments), env, str(REPOSITORY))


@contextmanager
def http_server(module: str, *arguments: str) -> Iterator[str]:
    """One of our fakes at an address of its own."""
    command = [sys.executable, "-m", f"tests.fakes.{module}", "--http", "0", *arguments]
    with at_address(command) as (_, address):
        yield address


@contextmanager
def at_address(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def serving_with(
    fake: AnthropicFake,
    *specs: ServerSpec,
    github: GitHubSettings | None = None,
    tools: Mapping[str, Tool] | None = None,
    patience: float = PATIENCE_SECONDS,
    **more: Any,
) -> Iterator[str]:
    """The address of a server whose runs have these servers, asked for by the fake vendor."""

    async def start() -> Runtime:
        settings = McpSettings(specs, github or GitHubSettings(url=NOWHERE))
        return await Runtime.start(tools=tools, servers=Servers(settings, patience=patience, **more))

    with served(start=start, within=override_settings(**vendor_settings(fake.url))) as url:
        yield url


def journal(file: Path, event: str = "") -> list[dict[str, Any]]:
    """What a server of ours wrote down, or only the events of one kind."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in map(json.loads, lines) if not event or line["event"] == event]
