"""The WebSocket door: one socket, any number of runs watched over it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import orjson
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer

from chat.asking import ask, follow, with_words
from chat.confirming import confirm, read_answer
from chat.errors import Refusal
from chat.eventlog import frame as as_frame
from chat.events import Logged
from chat.live_html import LiveHtml
from chat.models import Run
from chat.queries import run_of
from chat.questions import read_uuid
from chat.shapes import refusal_frame
from chat.stopping import request_stop
from chat.wiring import Runtime, runtime_of
from klerai.accounts.models import Person
from klerai.accounts.sockets import still_allowed
from klerai.api import BODY_LIMIT
from klerai.database import in_database

RECHECK_SECONDS = 30.0
FRAMES_A_SECOND = 60
POLICY, TOO_BIG, SIGNED_OUT = 1008, 1009, 4401


class ChatConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Takes ask, stop, confirm and resume; sends the events of the runs it watches. Leaving ends the watching only."""

    async def connect(self) -> None:
        self.person: Person = self.scope["person"]
        self.runtime: Runtime = runtime_of(self.scope)
        self.renders = parse_qs(self.scope.get("query_string", b"").decode()).get("render") == ["1"]
        self.watching: dict[UUID, asyncio.Task[None]] = {}
        self.second, self.frames = 0, 0
        await self.accept()
        self.recheck = asyncio.create_task(self._recheck())

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' look for old connections, a thread hop a frame: `in_database` looks after ours."""
        await getattr(self, get_handler_name(message))(message)

    async def disconnect(self, code: int) -> None:
        tasks = [self.recheck, *self.watching.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        text = text_data if text_data is not None else (bytes_data or b"").decode("utf-8", "replace")
        if len(text) > BODY_LIMIT:
            await self.close(TOO_BIG, f"A frame has at most {BODY_LIMIT // 1000} kB.")
            return
        if self._is_flood():
            await self.close(POLICY, f"At most {FRAMES_A_SECOND} frames a second.")
            return
        try:
            frame = json.loads(text)  # unlike orjson it lets half a pair through, which the question's reader names
        except (ValueError, RecursionError):
            await self._refuse(None, Refusal("invalid", "The frame is no JSON. Nothing was charged.", status=400))
            return
        if isinstance(frame, dict):
            await self._take(frame)

    async def _take(self, frame: Mapping[str, Any]) -> None:
        try:
            match frame.get("type"):
                case "ask":
                    await self._watch(await ask(self.runtime, self.person, frame, is_attended=True), after=0)
                case "stop":
                    run = await in_database(request_stop, self.person, _run_id(frame))
                    if run is None:
                        raise _nothing_here()
                    self.runtime.runner.stop(run.pk)
                case "confirm":
                    answer = read_answer(frame)
                    if await in_database(confirm, self.person, _run_id(frame), answer) is None:
                        raise _nothing_here()
                case "resume":
                    run = await in_database(run_of, self.person, _run_id(frame))
                    if run is None:
                        raise _nothing_here()
                    await self._watch(with_words(run), after=_last_seq(frame))
        except Refusal as refusal:
            await self._refuse(frame.get("run_id"), refusal)

    async def _watch(self, run: Run, *, after: int) -> None:
        """Follow the run from `after` on; a run that is watched already is followed anew from there."""
        earlier = self.watching.pop(run.pk, None)
        if earlier is not None:
            earlier.cancel()
            await asyncio.gather(earlier, return_exceptions=True)
        self.watching[run.pk] = asyncio.create_task(self._follow(run, after))

    async def _follow(self, run: Run, after: int) -> None:
        html = LiveHtml() if self.renders else None
        with contextlib.suppress(OSError, RuntimeError):  # the client went away
            async with aclosing(follow(self.runtime, run, after=0 if html else after)) as events:
                async for event in events:
                    data = event.data if html is None else html.dressed(event)
                    if event.seq > after:
                        shown = Logged(event.seq, event.type, data)
                        await self.send(text_data=as_frame(run.run_id, shown).decode())

    async def _refuse(self, run_id: Any, refusal: Refusal) -> None:
        frame = refusal_frame(refusal, run_id=run_id if isinstance(run_id, str) else None)
        await self.send(text_data=orjson.dumps(frame).decode())

    async def _recheck(self) -> None:
        await asyncio.sleep(RECHECK_SECONDS)
        while await still_allowed(self.scope):
            await asyncio.sleep(RECHECK_SECONDS)
        await self.close(SIGNED_OUT, "You were signed out.")

    def _is_flood(self) -> bool:
        second = int(asyncio.get_running_loop().time())
        self.frames = self.frames + 1 if second == self.second else 1
        self.second = second
        return self.frames > FRAMES_A_SECOND


def _run_id(frame: Mapping[str, Any]) -> UUID:
    found = read_uuid(frame.get("run_id"))
    if found is None:
        raise _nothing_here()
    return found


def _last_seq(frame: Mapping[str, Any]) -> int:
    value = frame.get("last_seq", 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal("invalid", "last_seq: Send the number of the last event you have.", status=400)
    return value


def _nothing_here() -> Refusal:
    return Refusal("not_found", "There is nothing here, or it is not yours.", status=404)
