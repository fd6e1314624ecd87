"""What an MCP server is to us: its name, the way to it and what its tools count as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import urlsplit

GITHUB = "github"
GITHUB_IMAGE = "ghcr.io/github/github-mcp-server"
GITHUB_URL = "https://api.githubcopilot.com/mcp/"


@dataclass(frozen=True, slots=True)
class Process:
    """A program of this machine that is spoken to over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """A server elsewhere, spoken to over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]


Way = Process | Address


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """`category` is the price of its tools; one that may not write offers only what its server calls read-only."""

    name: str
    way: Way
    category: str = "tool"
    may_write: bool = True

    @property
    def is_github(self) -> bool:
        return self.category == GITHUB


def is_github(name: str, way: Way) -> bool:
    """By its name, its image, its program or its address."""
    if name.lower() == GITHUB:
        return True
    match way:
        case Process(command, args):
            image = any(arg.partition("@")[0].rpartition(":")[0] == GITHUB_IMAGE or arg == GITHUB_IMAGE for arg in args)
            return image or PurePosixPath(command).name == "github-mcp-server"
        case Address():
            return urlsplit(way.url).hostname == urlsplit(GITHUB_URL).hostname
