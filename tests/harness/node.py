"""Servers of npm, where they are installed: `.ci/run` puts them there, tests fetch nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.settings import TEST_DATA_DIR

FOLDER = TEST_DATA_DIR / "node"


def npm_server(name: str) -> str:
    """The program of a reference server. Skips, or fails under KLERAI_REQUIRE_NODE=1, where it is missing."""
    program = Path(FOLDER, "node_modules", ".bin", f"mcp-server-{name}")
    if shutil.which("node") and program.exists():
        return str(program)
    reason = "node or the MCP servers of npm are not installed (see .ci/run), so what needs them was not tested"
    if os.environ.get("KLERAI_REQUIRE_NODE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
