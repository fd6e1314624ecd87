"""The reference for bench_streams: Channels and uvicorn, relaying the SDK's raw stream events, and nothing else."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import anthropic
import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.urls import path

settings.configure(SECRET_KEY="relay", INSTALLED_APPS=["channels"], ALLOWED_HOSTS=["*"])

import django

django.setup()


class Relay(AsyncWebsocketConsumer):  # type: ignore[misc]
    client: anthropic.AsyncAnthropic | None = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self.task = asyncio.create_task(self._relay(orjson.loads(text_data or "{}")["prompt"]))

    async def _relay(self, prompt: str) -> None:
        if Relay.client is None:
            Relay.client = anthropic.AsyncAnthropic(
                api_key="bench", base_url=os.environ["VENDOR"], http_client=anthropic.DefaultAioHttpClient()
            )
        answer = Relay.client.messages.with_streaming_response.create(
            model="claude-haiku-5-5", max_tokens=1024, stream=True, messages=[{"role": "user", "content": prompt}]
        )
        async with answer as response:
            rest = b""
            async for data in response.iter_bytes():
                *events, rest = (rest + data).split(b"\n\n")
                for event in events:
                    found: dict[str, Any] = orjson.loads(event[event.index(b"data: ") + 6 :])
                    if found["type"] == "content_block_delta" and found["delta"]["type"] == "text_delta":
                        await self.send(text_data=orjson.dumps({"t": found["delta"]["text"]}).decode())
        await self.send(text_data='{"done":1}')


application = ProtocolTypeRouter({"websocket": URLRouter([path("ws/chat/", Relay.as_asgi())])})
