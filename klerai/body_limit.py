"""Too large bodies are refused while they arrive, before any of the product sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from django.http import JsonResponse

from klerai.api import BODY_LIMIT, too_large_json
from klerai.uploads import Uploads

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LINGER_SECONDS = 2.0


class Meter(Protocol):
    """What a body is measured by."""

    @property
    def limit(self) -> int: ...
    def take(self, data: bytes) -> bool: ...
    def refusal(self, declared: int) -> JsonResponse: ...


class BodyLimit:
    """Answers 413 as soon as the header or the bytes received pass the limit; the rest is never kept."""

    def __init__(self, inner: Application, *, limit: int = BODY_LIMIT, uploads: Uploads | None = None) -> None:
        self.inner = inner
        self.limit = limit
        self.uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        upload = await self.uploads.meter(scope) if self.uploads is not None else None
        meter: Meter = upload or _PlainMeter(self.limit)
        declared = _declared(scope)
        if declared > meter.limit:
            await _answer(send, meter.refusal(declared))
            return
        body = _Measured(receive, meter)
        await self.inner(scope, body.receive, send)
        if body.is_too_large:
            await _answer(send, meter.refusal(declared), until_left=receive if upload else None)


class _PlainMeter:
    """One limit for all that arrives."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._received = 0

    def take(self, data: bytes) -> bool:
        self._received += len(data)
        return self._received > self.limit

    def refusal(self, declared: int) -> JsonResponse:
        return too_large_json(self.limit, used=max(declared, self._received))


class _Measured:
    """To what is behind, a body that grows too large looks like a client that left: it answers nothing."""

    def __init__(self, receive: Receive, meter: Meter) -> None:
        self._receive = receive
        self._meter = meter
        self.is_too_large = False

    async def receive(self) -> Message:
        message = await self._receive()
        self.is_too_large = self.is_too_large or self._meter.take(message.get("body", b""))
        return {"type": "http.disconnect"} if self.is_too_large else message


def _declared(scope: Scope) -> int:
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


async def _answer(send: Send, response: JsonResponse, *, until_left: Receive | None = None) -> None:
    """With `until_left`, what still arrives is dropped for a moment, so that a client that is sending can hear us."""
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    headers += [(b"content-length", str(len(response.content)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content, "more_body": until_left is not None})
    if until_left is not None:
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while (await until_left()).get("more_body"):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})
