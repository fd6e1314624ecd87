"""Asking a vendor: how long, how often, and what to say when it fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from retrieval.errors import EmbedderFailed

T = TypeVar("T")
_MOST_SAID = 200


@dataclass(frozen=True, slots=True)
class Vendor:
    """Whom a sentence speaks of, and the settings that it can point to. The key itself is never said."""

    title: str
    address_setting: str
    key_setting: str = ""
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Patience:
    """What one request may take and how often it is repeated; a vendor's own wish for a wait is met up to the cap."""

    timeout_seconds: float = 30
    attempts: int = 3
    first_wait_seconds: float = 1
    longest_wait_seconds: float = 10

    def wait_seconds(self, attempt: int, wished: float | None) -> float:
        if wished is not None:
            return min(max(wished, 0), self.longest_wait_seconds)
        longest = min(self.first_wait_seconds * 2.0 ** (attempt - 1), self.longest_wait_seconds)
        return longest * random.uniform(0.5, 1)


class Fault(Exception):
    """One request that failed: what to tell, whether asking again can help, and after how many seconds."""

    def __init__(self, sentence: str, *, may_pass: bool, wait_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.may_pass = may_pass
        self.wait_seconds = wait_seconds


async def ask(
    vendor: Vendor, request: Callable[[], Awaitable[T]], patience: Patience, *, is_awaited: bool = False
) -> T:
    """What `request` gives, repeated while that may help. Where somebody waits, all of it may take one timeout.

    Raises EmbedderFailed with the last fault's sentence.
    """
    try:
        async with asyncio.timeout(patience.timeout_seconds if is_awaited else None):
            return await _repeated(vendor, request, patience)
    except TimeoutError as error:
        raise EmbedderFailed(str(too_slow(vendor, patience))) from error
    except Fault as fault:
        raise EmbedderFailed(str(fault)) from fault


async def post(client: httpx2.AsyncClient, path: str, body: dict[str, Any], *, vendor: Vendor) -> httpx2.Response:
    """Send JSON, whatever the answer's status. Raises Fault when there is none."""
    try:
        return await client.post(path, json=body)
    except httpx2.TimeoutException as error:
        raise TimeoutError from error
    except httpx2.RequestError as error:
        raise unreachable(vendor) from error


def fault_of_status(vendor: Vendor, status: int, said: str = "", *, wait_seconds: float | None = None) -> Fault:
    """The fault for an HTTP status; `said` is the vendor's own explanation."""
    match status:
        case 401 | 403:
            return rejected_key(vendor)
        case 404:
            return Fault(f"{vendor.title} is not at the address given. Check {vendor.address_setting}.", may_pass=False)
        case 429:
            sentence = f"{vendor.title} wants fewer requests for now. Try again in a minute."
            return Fault(sentence, may_pass=True, wait_seconds=wait_seconds)
        case _ if status >= 500:
            return Fault(f"{vendor.title} has a fault (HTTP {status}). Try again in a minute.", may_pass=True)
    words = " ".join((said.replace(vendor.key, "…") if vendor.key else said).split())
    reason = f": {words[:_MOST_SAID]}" if words else "."
    return Fault(f"{vendor.title} refused the text (HTTP {status}){reason}", may_pass=False)


def rejected_key(vendor: Vendor) -> Fault:
    setting = vendor.key_setting or vendor.address_setting
    return Fault(f"{vendor.title} does not accept us. Put a valid {setting} in the settings.", may_pass=False)


def unreachable(vendor: Vendor) -> Fault:
    sentence = f"{vendor.title} cannot be reached. Check {vendor.address_setting} and the network, then try again."
    return Fault(sentence, may_pass=True)


def unreadable(vendor: Vendor, what: str = "gave an answer that cannot be read") -> Fault:
    return Fault(f"{vendor.title} {what}. Try again; if it stays so, check {vendor.address_setting}.", may_pass=True)


def too_slow(vendor: Vendor, patience: Patience) -> Fault:
    return Fault(
        f"{vendor.title} did not answer within {patience.timeout_seconds:g} seconds. Try again in a minute.",
        may_pass=True,
    )


async def _repeated(vendor: Vendor, request: Callable[[], Awaitable[T]], patience: Patience) -> T:
    attempt = 1
    while True:
        try:
            async with asyncio.timeout(patience.timeout_seconds):
                return await request()
        except TimeoutError:
            fault = too_slow(vendor, patience)
        except Fault as raised:
            fault = raised
        if not fault.may_pass or attempt >= patience.attempts:
            raise fault
        await asyncio.sleep(patience.wait_seconds(attempt, fault.wait_seconds))
        attempt += 1
