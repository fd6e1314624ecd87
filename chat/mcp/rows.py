"""The servers that were added in the admin."""

from __future__ import annotations

import json

import structlog

from chat.mcp.configuration import server_spec
from chat.mcp.specs import Address, ServerSpec
from chat.models import McpServer
from klerai.encryption import Unreadable, decrypt

logger = structlog.get_logger(__name__)


def added_servers(*, may_write_github: bool) -> list[ServerSpec]:
    """Those that are switched on; one whose secrets cannot be read is left out, and the log says so."""
    found = []
    for row in McpServer.objects.filter(is_enabled=True).order_by("name"):
        try:
            headers = headers_of(row)
        except Unreadable as error:
            logger.error("mcp_server_left_out", server=row.name, reason=str(error))
            continue
        found.append(server_spec(row.name, Address(row.url, headers), may_write_github=may_write_github))
    return found


def headers_of(row: McpServer) -> dict[str, str]:
    """Raises Unreadable."""
    return dict(json.loads(decrypt(row.headers_cipher))) if row.headers_cipher else {}
