"""The ASGI application: HTTP by Django, WebSockets by Channels, and the life of the process around both."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "klerai.settings")
django_application = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402  the apps have to be ready first

from chat.routing import websocket_urlpatterns  # noqa: E402
from chat.wiring import Runtime  # noqa: E402
from klerai.accounts.scopes import may_write  # noqa: E402
from klerai.accounts.sockets import PersonSocketMiddleware  # noqa: E402
from klerai.body_limit import BodyLimit  # noqa: E402
from klerai.uploads import Uploads  # noqa: E402
from retrieval.ingestion.originals import MOST_BYTES  # noqa: E402

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class WithRuntime:
    """Starts the runtime with the server, or with the first request under a server that knows no lifespan."""

    def __init__(self, application: Application, *, start: Callable[[], Awaitable[Runtime]] = Runtime.start) -> None:
        self._application = application
        self._start = start
        self._runtime: Runtime | None = None
        self._starting: asyncio.Task[Runtime] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "runtime": await self._started()}
        await self._application(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    scope.setdefault("state", {})["runtime"] = await self._started()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    raise
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if self._runtime is not None:
                    await self._runtime.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _started(self) -> Runtime:
        if self._runtime is None:
            self._starting = self._starting or asyncio.ensure_future(self._start())
            self._runtime = await self._starting
        return self._runtime


UPLOADS = Uploads(
    path=re.compile(r"/api/knowledge-bases/[^/]+/documents|/knowledge/[^/]+/"),
    file_limit=MOST_BYTES,
    request_limit=5 * MOST_BYTES // 2,
    is_let_in=may_write,
)
application = WithRuntime(
    ProtocolTypeRouter(
        {
            "http": BodyLimit(cast(Any, django_application), uploads=UPLOADS),
            "websocket": PersonSocketMiddleware(URLRouter(websocket_urlpatterns)),
        }
    )
)
