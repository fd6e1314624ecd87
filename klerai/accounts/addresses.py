"""Which address a request comes from, told by a proxy only when that proxy is known."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

from klerai.env import BadSetting, Environment

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def trusted_networks(env: Environment, name: str = "KLERAI_TRUSTED_PROXIES") -> list[Network]:
    """Addresses and networks, comma separated."""
    try:
        return [ip_network(word) for word in env.words(name)]
    except ValueError as error:
        raise BadSetting(name, f"must list addresses or networks, such as 10.0.0.5,10.1.0.0/16: {error}.") from error


def client_address(request: HttpRequest) -> Address | None:
    """The nearest hop that is not a known proxy; None when the server was reached without an address."""
    hops = [request.META.get("REMOTE_ADDR", "")]
    hops += reversed(request.headers.get("X-Forwarded-For", "").split(","))
    return _first_stranger(hops, settings.TRUSTED_PROXIES)


def is_loopback(request: HttpRequest) -> bool:
    """Whether a program on this machine asks for itself, and is not a proxy that passes somebody on."""
    address = _parse(request.META.get("REMOTE_ADDR", ""))
    return address is not None and address.is_loopback and "X-Forwarded-For" not in request.headers


def _first_stranger(hops: Sequence[str], proxies: Sequence[Network]) -> Address | None:
    """Walk from the socket outwards; what a stranger claims about hops before it is not read."""
    last: Address | None = None
    for hop in hops:
        address = _parse(hop)
        if address is None:
            return last
        last = address
        if not any(address in network for network in proxies):
            return address
    return last


def _parse(text: str) -> Address | None:
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
