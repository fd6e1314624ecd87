"""The door outwards: clients for services that have no SDK here.

`vendor_client` is for addresses that the operator wrote into the settings, so it may reach this machine's network too.
Nothing that a person or a model can influence may choose an address for it.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import httpx2

CONNECT_SECONDS = 5


def vendor_client(
    base_url: str, *, timeout_seconds: float, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """A client for the service at `base_url`, to be used as a context manager inside one event loop.

    `timeout_seconds` limits every wait for it, and finding it may take 5 of them. Redirects are not followed, since the
    key would go with them. The environment's proxy is used, but not to reach this machine.
    """
    return httpx2.AsyncClient(
        base_url=base_url,
        headers=headers,
        timeout=httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
        follow_redirects=False,
        verify=_trusted_authorities(),
        trust_env=not _is_this_machine(base_url),
    )


@lru_cache(maxsize=1)
def _trusted_authorities() -> ssl.SSLContext:
    """Reading them takes longer than most requests."""
    return httpx2.create_ssl_context()


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
