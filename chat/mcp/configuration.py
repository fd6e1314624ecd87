"""The operator's servers: the file KLERAI_MCP_SERVERS names, and what is set for GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chat.mcp.specs import GITHUB, GITHUB_URL, Address, Process, ServerSpec, Way, is_github
from klerai.env import BadSetting, Environment

VARIABLE = "KLERAI_MCP_SERVERS"
SERVER_NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_KNOWN = {"type", "command", "args", "env", "cwd", "url", "headers", "disabled"}
_HTTP = {"http", "streamable-http", "streamableHttp", "streamable_http"}


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """`token` is the operator's and serves everybody who has none. `url` is "" where Docker may be used instead."""

    token: str = field(default="", repr=False)
    url: str = ""
    may_write: bool = False


@dataclass(frozen=True, slots=True)
class McpSettings:
    servers: tuple[ServerSpec, ...] = ()
    github: GitHubSettings = GitHubSettings()


def mcp_settings(env: Environment) -> McpSettings:
    """Raises BadSetting."""
    github = GitHubSettings(
        env.secret("GITHUB_PERSONAL_ACCESS_TOKEN"),
        env.url("KLERAI_GITHUB_MCP_URL"),
        env.flag("KLERAI_GITHUB_WRITES"),
    )
    file = env.text(VARIABLE)
    return McpSettings(_servers(Path(file).expanduser(), github) if file else (), github)


def _servers(file: Path, github: GitHubSettings) -> tuple[ServerSpec, ...]:
    try:
        written = json.loads(file.read_text())
    except OSError as error:
        raise BadSetting(VARIABLE, f"points to {file}, which cannot be read: {error.strerror}.") from error
    except ValueError as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadSetting(VARIABLE, f"points to {file}, which is not JSON{place}.") from error
    servers = written.get("mcpServers") if isinstance(written, dict) else None
    if not isinstance(servers, dict):
        raise BadSetting(VARIABLE, f'points to {file}, which must hold {{"mcpServers": {{name: …}}}}.')
    specs = [_spec(name, given, github) for name, given in servers.items() if not _is_off(name, given)]
    return tuple(specs)


def _is_off(name: str, given: Any) -> bool:
    if not isinstance(given, dict):
        raise _wrong(name, "must be an object with a command or a url")
    return given.get("disabled") is True


def _spec(name: str, given: Mapping[str, Any], github: GitHubSettings) -> ServerSpec:
    if not SERVER_NAME.fullmatch(name):
        raise _wrong(name, "must have a name of at most 32 letters, digits, - and single _")
    unknown = sorted(set(given) - _KNOWN)
    if unknown:
        raise _wrong(name, f"has the unknown key {unknown[0]!r}")
    return server_spec(name, _way(name, given), may_write_github=github.may_write)


def server_spec(name: str, way: Way, *, may_write_github: bool) -> ServerSpec:
    if is_github(name, way):
        return ServerSpec(name, way, GITHUB, may_write_github)
    return ServerSpec(name, way)


def _way(name: str, given: Mapping[str, Any]) -> Way:
    if ("command" in given) == ("url" in given):
        raise _wrong(name, "must have either a command or a url")
    kind = given.get("type", "stdio" if "command" in given else "http")
    if "url" in given:
        if kind not in _HTTP:
            raise _wrong(name, "is reached over streamable HTTP; no other type is possible with a url")
        if not is_http_address(given["url"]):
            raise _wrong(name, "must have a url that starts with http:// or https://, without a password in it")
        return Address(given["url"], _texts(name, "headers", given))
    if kind != "stdio":
        raise _wrong(name, "has a command, so its type must be stdio")
    command, args, folder = given["command"], given.get("args", []), given.get("cwd")
    if not (isinstance(command, str) and command.strip()):
        raise _wrong(name, "must have a command that is a text")
    if not (isinstance(args, list) and all(isinstance(arg, str) for arg in args)):
        raise _wrong(name, "must have args that are a list of texts")
    if not (folder is None or isinstance(folder, str)):
        raise _wrong(name, "must have a cwd that is a text")
    return Process(command, tuple(args), _texts(name, "env", given), folder)


def is_http_address(url: object) -> bool:
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.password is None and parts.port != 0
    except ValueError:
        return False


def _texts(name: str, key: str, given: Mapping[str, Any]) -> dict[str, str]:
    texts = given.get(key, {})
    if not (isinstance(texts, dict) and all(isinstance(value, str) for value in texts.values())):
        raise _wrong(name, f"must have {key} that are names with texts")
    return texts


def _wrong(name: str, problem: str) -> BadSetting:
    return BadSetting(VARIABLE, f"names a file in which the server {name[:40]!r} {problem}.")


def github_url(github: GitHubSettings) -> str:
    return github.url or GITHUB_URL
