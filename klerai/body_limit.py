"""Too large bodies are refused while they arrive, before any of the product sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from klerai.api import BODY_LIMIT, too_large_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Answers 413 as soon as the header or the bytes received pass `limit`; the rest is never read."""

    def __init__(self, inner: Application, *, limit: int = BODY_LIMIT) -> None:
        self.inner = inner
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        if _declared(scope) > self.limit:
            await _answer(send, self.limit)
            return
        body = _Counted(receive, self.limit)
        await self.inner(scope, body.receive, send)
        if body.is_too_large:
            await _answer(send, self.limit)


class _Counted:
    """To what is behind, a body that grows too large looks like a client that left: it answers nothing."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._received = 0

    @property
    def is_too_large(self) -> bool:
        return self._received > self._limit

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self.is_too_large else message


def _declared(scope: Scope) -> int:
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


async def _answer(send: Send, limit: int) -> None:
    response = too_large_json(limit)
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    headers += [(b"content-length", str(len(response.content)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
