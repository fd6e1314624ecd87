"""GitHub's own server: in its container, or at its own address."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from chat.mcp.configuration import GitHubSettings, github_url
from chat.mcp.specs import GITHUB, GITHUB_IMAGE, Address, Process, ServerSpec

TOOLSETS = "context,repos,issues,pull_requests,users,actions"
DOCKER_SECONDS = 5
DOCKER_KNOWN_SECONDS = 300.0
_DOCKER = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "XDG_RUNTIME_DIR")


def github_spec(token: str, github: GitHubSettings, *, with_docker: bool) -> ServerSpec:
    """With this token, in its container or else at its own address; read-only unless the operator allows more."""
    if with_docker and not github.url:
        env = {
            **{name: os.environ[name] for name in _DOCKER if name in os.environ},
            "GITHUB_PERSONAL_ACCESS_TOKEN": token,
            "GITHUB_TOOLSETS": TOOLSETS,
            **({} if github.may_write else {"GITHUB_READ_ONLY": "1"}),
        }
        passed = [part for name in env if name.startswith("GITHUB_") for part in ("-e", name)]
        way: Process | Address = Process("docker", ("run", "-i", "--rm", *passed, GITHUB_IMAGE), env)
    else:
        headers = {"Authorization": f"Bearer {token}", "X-MCP-Toolsets": TOOLSETS}
        if not github.may_write:
            headers["X-MCP-Readonly"] = "true"
        way = Address(github_url(github), headers)
    return ServerSpec(GITHUB, way, GITHUB, github.may_write)


class Docker:
    """What this machine's Docker has, asked for now and then and never twice at once."""

    def __init__(self) -> None:
        self._asking: asyncio.Task[bool] | None = None
        self._asks_at = 0.0
        self._said: bool | None = None

    async def has_image(self, *, seconds: float) -> bool | None:
        """Whether it answers and has the official image, as it said last; None when it has not said so in time yet."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or now >= self._asks_at:
            self._asks_at = now + DOCKER_KNOWN_SECONDS
            self._asking = asyncio.create_task(_has_image())
        finished, _ = await asyncio.wait({self._asking}, timeout=seconds)
        self._said = self._asking.result() if finished else self._said
        return self._said


async def _has_image() -> bool:
    """Nothing is downloaded in the middle of a question."""
    try:
        asking = await asyncio.create_subprocess_exec(
            *("docker", "image", "inspect", "--format", "{{.Id}}", GITHUB_IMAGE),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(DOCKER_SECONDS):
            return await asking.wait() == 0
    except TimeoutError:
        return False
    finally:
        if asking.returncode is None:
            with suppress(ProcessLookupError):
                asking.kill()
            await asking.wait()
