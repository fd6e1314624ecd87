"""The door outwards: clients for services that have no SDK here.

`vendor_client` is for addresses that the operator wrote into the settings, so it may reach this machine's network too.
Nothing that a person or a model can influence may choose an address for it: `guarded_client` is for those. It looks at
the address it is about to connect to, not at the one that was written, so that no way of writing, no name and no
redirect leads past it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

CONNECT_SECONDS = 5
WEB_PORTS = frozenset({80, 443})
MOST_BYTES = 5_000_000
MOST_REDIRECTS = 3

# Names for an address: every IPv4 address of a host. Raises OSError when there are none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

# Global by the registry, and yet nobody's business: a cloud's own services, protocol assignments, a 6to4 relay.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))


class AddressRefused(httpx2.ConnectError):
    """An address that may not be fetched; nothing was sent to it. `str(error)` says why."""


class AnswerTooLarge(httpx2.ReadError):
    """An answer of more bytes than were wanted, or packed in a way that is not unpacked here."""


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


async def ipv4_addresses(host: str, port: int) -> list[str]:
    """What this machine's resolver says."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def guarded_client(
    *,
    timeout_seconds: float = 10,
    total_seconds: float | None = 30,
    most_bytes: int | None = MOST_BYTES,
    headers: Mapping[str, str] | None = None,
    ports: Collection[int] = WEB_PORTS,
    resolve: Resolver = ipv4_addresses,
    network: httpcore2.AsyncNetworkBackend | None = None,
    authorities: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """A client that reaches public IPv4 addresses only, by http or https, on the ports given.

    Every address of a host must be public, and the one that was looked at is the one that is connected to; the host's
    name stays in the request and in the certificate. No redirects unless `fetched` follows them, no proxy, no cookies,
    no credentials in the address. `timeout_seconds` limits each wait, `total_seconds` an answer with its body, and
    `most_bytes` the body once unpacked. `network` opens the connections and `authorities` vouch for certificates; each
    has a default. Raises AddressRefused and AnswerTooLarge beside what httpx2 raises.
    """
    transport = _GuardedTransport(
        _CheckedNetwork(network or httpcore2.AnyIOBackend(), frozenset(ports), resolve),
        authorities=authorities or _trusted_authorities(),
        total_seconds=total_seconds,
        most_bytes=most_bytes,
    )
    return httpx2.AsyncClient(
        transport=transport,
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
        follow_redirects=False,
        trust_env=False,
    )


async def fetched(client: httpx2.AsyncClient, address: str, *, most_redirects: int = MOST_REDIRECTS) -> httpx2.Response:
    """The answer at an address and at most so many redirects behind it, with its body read.

    Each hop is checked like the first one; credentials do not go along to another host, and no hop leads from https
    back to http. Raises what the client does, and AddressRefused for one redirect too many.
    """
    response = await client.get(address)
    for _ in range(most_redirects):
        onwards = response.next_request
        if onwards is None:
            return response
        if response.url.scheme == "https" and onwards.url.scheme != "https":
            raise AddressRefused("It redirects from https to an address that is not.", request=onwards)
        response = await client.send(onwards)
    if response.next_request is not None:
        raise AddressRefused(f"It redirects more than {most_redirects} times.", request=response.next_request)
    return response


def is_public(address: str) -> bool:
    """Whether it is an IPv4 address that anybody in the world may reach."""
    try:
        ip = ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NOT_PUBLIC)


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to addresses it has looked at itself, and to nothing else."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend, ports: frozenset[int], resolve: Resolver) -> None:
        self._network = network
        self._ports = ports
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        if port not in self._ports:
            raise AddressRefused(f"Port {port} may not be used.")
        if ":" in host:  # a resolver would take the IPv4 address out of some of these
            raise AddressRefused("Addresses of IPv6 may not be used.")
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("Its name was not found in time.") from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("There is no such host.") from error
        if not addresses or not all(map(is_public, addresses)):
            raise AddressRefused("It is not a public address.")
        return await self._network.connect_tcp(addresses[0], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise AddressRefused("It is not a public address.")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """Sends over a checked network, and lets back no more than was wanted."""

    def __init__(
        self,
        network: _CheckedNetwork,
        *,
        authorities: ssl.SSLContext,
        total_seconds: float | None,
        most_bytes: int | None,
    ) -> None:
        super().__init__(verify=authorities, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=authorities, network_backend=network)
        self._total_seconds = total_seconds
        self._most_bytes = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _check(request.url)
        loop = asyncio.get_running_loop()
        deadline = None if self._total_seconds is None else loop.time() + self._total_seconds
        try:
            async with asyncio.timeout_at(deadline):
                response = await super().handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("It took too long to answer.") from error
        kept = [(name, value) for name, value in response.headers.raw if name.lower() not in _DROPPED]
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        body = _LimitedBody(response.stream, _unpacking(response), deadline=deadline, most_bytes=self._most_bytes)
        return httpx2.Response(response.status_code, headers=kept, stream=body, extensions=response.extensions)


# Unpacked here already, and cookies are not kept.
_DROPPED = (b"content-encoding", b"content-length", b"set-cookie")
_PIECE_BYTES = 65_536


def _check(url: httpx2.URL) -> None:
    if url.scheme not in ("http", "https") or not url.host:
        raise AddressRefused("Only addresses that begin with http:// or https:// may be fetched.")
    if url.port == 0:  # below it would count as not given
        raise AddressRefused("Port 0 may not be used.")
    if url.userinfo:
        raise AddressRefused("An address with a user name or password in it may not be fetched.")


def _unpacking(response: httpx2.Response) -> Any:
    """What unpacks the body piece by piece, or None for one that is not packed."""
    match response.headers.get("content-encoding", "identity").strip().lower():
        case "identity" | "":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(zlib.MAX_WBITS | 32)
        case other:
            raise AnswerTooLarge(f"It came packed as {other[:40]!r}, though it was asked for as it is.")


class _LimitedBody(httpx2.AsyncByteStream):
    """A body, unpacked, that ends in an error where it grows too large or takes too long."""

    def __init__(
        self, body: httpx2.AsyncByteStream, unpacking: Any, *, deadline: float | None, most_bytes: int | None
    ) -> None:
        self._body = body
        self._unpacking = unpacking
        self._deadline = deadline
        self._left = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._body)
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    packed = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise httpx2.ReadTimeout("It took too long to answer.") from error
            for piece in self._unpacked(packed):
                if self._left is not None:
                    self._left -= len(piece)
                    if self._left < 0:
                        raise AnswerTooLarge("It is larger than may be read.")
                yield piece

    async def aclose(self) -> None:
        await self._body.aclose()

    def _unpacked(self, packed: bytes) -> Iterable[bytes]:
        if self._unpacking is None:
            yield packed
            return
        try:
            while piece := self._unpacking.decompress(packed, _PIECE_BYTES):
                yield piece
                packed = self._unpacking.unconsumed_tail
        except zlib.error as error:
            raise httpx2.DecodingError("It is packed in a way that cannot be read.") from error


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
