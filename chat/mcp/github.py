"""GitHub's own server: in its container, or at its own address."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from chat.mcp.configuration import GitHubSettings, github_url
from chat.mcp.specs import GITHUB, GITHUB_IMAGE, Address, Process, ServerSpec

TOOLSETS = "context,repos,issues,pull_requests,users,actions"
DOCKER_SECONDS = 5
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


async def docker_has_image() -> bool:
    """Whether Docker answers here and has the official image; nothing is downloaded in the middle of a question."""
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
