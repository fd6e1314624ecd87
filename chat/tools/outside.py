"""Asking a service outside: one request within its limits, and words for every way in which it can fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from chat.tools.base import ToolFailure

ATTEMPTS = 2
_LONGEST_WAIT_SECONDS = 5.0
_FIRST_WAIT_SECONDS = 0.5
_MOST_SAID = 300


@dataclass(frozen=True, slots=True)
class Service:
    """Whom a sentence speaks of, and what one question to it may take, its repetition included."""

    title: str
    seconds: float
    most_bytes: int = 2_000_000
    key: str = field(default="", repr=False)


class OutsideFault(Exception):
    """A question that got no answer: a sentence for the model.

    `may_pass` says whether the same request can succeed later, `is_retryable` whether one with other arguments can.
    """

    def __init__(
        self, sentence: str, *, may_pass: bool = False, is_retryable: bool = False, wait_seconds: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.may_pass = may_pass
        self.is_retryable = is_retryable
        self.wait_seconds = wait_seconds

    def as_failure(self) -> ToolFailure:
        return ToolFailure(str(self), is_retryable=self.is_retryable)


@dataclass(frozen=True, slots=True)
class Answered:
    """A status and the JSON that came with it; None where it was none."""

    status: int
    body: Any
    retry_after: str = ""


async def ask_json(
    client: httpx2.AsyncClient,
    service: Service,
    method: str,
    path: str,
    *,
    body: Mapping[str, Any] | None = None,
    params: Mapping[str, str] | None = None,
) -> Answered:
    """The answer, whatever it says, unless it is one that may pass: then it is asked for once more.

    Raises OutsideFault when there is none in time, and for 429 and 5xx.
    """
    try:
        async with asyncio.timeout(service.seconds):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    answered = await _one(client, service, method, path, body, params)
                    if answered.status < 500 and answered.status not in (408, 429):
                        return answered
                    raise _fault_of(service, answered)
                except OutsideFault as fault:
                    wait = _FIRST_WAIT_SECONDS if fault.wait_seconds is None else fault.wait_seconds
                    if not fault.may_pass or attempt == ATTEMPTS or wait > _LONGEST_WAIT_SECONDS:
                        raise
                    await asyncio.sleep(wait)
    except TimeoutError as error:
        raise OutsideFault(
            f"{service.title} did not answer within {service.seconds:g} seconds. Go on without it."
        ) from error
    raise AssertionError("every attempt returns or raises")


def refused(service: Service, answered: Answered) -> OutsideFault:
    """The fault for a status from 400 to 499 that says that the request is at fault."""
    said = said_by(service, answered)
    reason = f": {said}" if said else "."
    match answered.status:
        case 401 | 403:
            return OutsideFault(
                f"{service.title} does not accept this server's key. Only the people who run the server can change "
                "that; go on without it."
            )
        case 402:
            return OutsideFault(f"{service.title} wants to be paid first. Go on without it.")
        case 400 | 413 | 422:
            return OutsideFault(f"{service.title} refused the request{reason}", is_retryable=True)
    return OutsideFault(f"{service.title} refused the request (HTTP {answered.status}){reason} Go on without it.")


def said_by(service: Service, answered: Answered) -> str:
    """The service's own explanation, in one short line and without our key."""
    match answered.body:
        case {"error": {"message": str(said)}} | {"reason": str(said)} | {"message": str(said)} | {"error": str(said)}:
            plain = " ".join((said.replace(service.key, "…") if service.key else said).split())
            return plain[:_MOST_SAID]
    return ""


def unreadable(service: Service) -> OutsideFault:
    return OutsideFault(f"{service.title} gave an answer that cannot be read. Go on without it.")


async def _one(
    client: httpx2.AsyncClient,
    service: Service,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    params: Mapping[str, str] | None,
) -> Answered:
    received = bytearray()
    try:
        async with client.stream(method, path, json=body, params=params) as response:
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) > service.most_bytes:
                    raise OutsideFault(f"{service.title} answered more than can be read. Go on without it.")
    except httpx2.TimeoutException as error:
        raise TimeoutError from error
    except httpx2.DecodingError as error:
        raise unreadable(service) from error
    except httpx2.RequestError as error:
        raise OutsideFault(f"{service.title} cannot be reached. Go on without it.", may_pass=True) from error
    try:
        parsed = json.loads(received)
    except (ValueError, RecursionError):
        parsed = None
    return Answered(response.status_code, parsed, response.headers.get("retry-after", ""))


def _fault_of(service: Service, answered: Answered) -> OutsideFault:
    wished = answered.retry_after
    wait = float(wished) if wished.isascii() and wished.isdigit() else None
    if answered.status == 429:
        return OutsideFault(
            f"{service.title} wants fewer requests for now. Go on without it.", may_pass=True, wait_seconds=wait
        )
    return OutsideFault(
        f"{service.title} has a fault (HTTP {answered.status}). Go on without it.", may_pass=True, wait_seconds=wait
    )
