"""A small server that speaks the Anthropic Messages API: `python -m tests.fakes.anthropic_server --port 0`.

POST /v1/messages (streaming and not), /v1/messages/count_tokens, GET /v1/models; and for tests POST /_script, /_reset,
GET /_requests, /_stats. It prints its address as its first line.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qs

import httptools
import orjson
import uvloop

from tests.fakes import anthropic_model
from tests.fakes.anthropic_cache import PrefixCache
from tests.fakes.anthropic_delivery import SSE_HEAD, Delivery, chunked, json_response
from tests.fakes.anthropic_records import Records, Seen
from tests.fakes.anthropic_rules import BadRequest, Rules
from tests.fakes.anthropic_script import Call, Scripts, Turn, from_json, planned, spoken
from tests.fakes.anthropic_wire import Rendered, error_body, is_genuine, render, whole_message

MODELS = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5-20251001")


class Vendor:
    """What the server knows between requests: scripts, records, the prompt cache and what it has issued."""

    def __init__(self, *, each_ms: float) -> None:
        self.each_ms = each_ms
        self.scripts = Scripts()
        self.records = Records()
        self.cache = PrefixCache()
        self.rules = Rules(is_genuine)
        self._numbers = itertools.count(1)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{os.getpid():x}{self.next_number():08x}"

    def next_number(self) -> int:
        return next(self._numbers)

    def reset(self) -> None:
        self.scripts.clear()
        self.records.clear()
        self.cache = PrefixCache()

    def turn_for(self, body: dict[str, Any], seen: Seen) -> Turn:
        """The scripted turn, else the planned one, else what a sensible model would say."""
        messages = body["messages"]
        if small := seen.small_tool:
            return self.scripts.take(small) or anthropic_model.SMALL_WORK[small](messages)
        seen.key = self.scripts.key_for([spoken(message) for message in messages if message["role"] == "user"])
        return self.scripts.take(seen.key) or self.scripts.take("") or self.own_turn(body)

    def own_turn(self, body: dict[str, Any]) -> Turn:
        """What nobody scripted."""
        messages, tools = body["messages"], body.get("tools") or []
        choice = body.get("tool_choice") or {}
        if choice.get("type") == "tool":
            return anthropic_model.forced(choice["name"], tools, messages)
        callable_tools = [] if choice.get("type") == "none" else tools
        return planned(messages, callable_tools) or anthropic_model.sensible(body, each_ms=self.each_ms)


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; a request is answered before the next one is read."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._delivery: Delivery | None = None
        self._seen: Seen | None = None
        self._number = vendor.next_number()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._delivery is not None:
            self._delivery.stop()
        if self._seen is not None:
            self._seen.note_closed()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            self._transport.close()
            raise
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._url, self._body = b"", bytearray()
        self._headers: dict[str, str] = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode().partition("?")
        if path.startswith("/_"):
            self._answer(200, self._control(path, query))
        else:
            self._route(self._parser.get_method().decode(), path)

    def _route(self, method: str, path: str) -> None:
        if path in ("/v1/messages", "/v1/messages/count_tokens") and method == "POST":
            self._messages(path)
        elif path == "/v1/models" and method == "GET":
            self._answer(200, _models())
        else:
            self._refuse(404, "not_found_error", f"Not found: {path}")

    def _answer(self, status: int, body: Any, *, headers: dict[str, str] | None = None) -> None:
        self._transport.write(json_response(status, body, headers or {}))

    def _refuse(self, status: int, kind: str, sentence: str, *, headers: dict[str, str] | None = None) -> None:
        request_id = self._vendor.new_id("req")
        if self._seen is not None:
            self._seen.note_answered(status)
        self._answer(
            status, error_body(kind, sentence, request_id), headers={"request-id": request_id, **(headers or {})}
        )

    def _control(self, path: str, query: str) -> Any:
        vendor = self._vendor
        match path:
            case "/_script":
                for script in orjson.loads(self._body):
                    turns = [from_json(turn) for turn in script["turns"]]
                    vendor.scripts.put(script["key"], turns, forever=script["forever"])
                return {}
            case "/_reset":
                vendor.reset()
                return {}
            case "/_requests":
                return vendor.records.listed(parse_qs(query).get("key", [None])[0])
            case "/_stats":
                usage = resource.getrusage(resource.RUSAGE_SELF)
                return {**vendor.records.totals(), "cpu": usage.ru_utime + usage.ru_stime, "rss_kb": usage.ru_maxrss}
        return {"unknown": path}

    def _messages(self, path: str) -> None:
        self._seen = self._vendor.records.open(path, self._headers, bytes(self._body), connection=self._number)
        headers = self._headers
        key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
        if not key or key.startswith("invalid"):
            return self._refuse(401, "authentication_error", "invalid x-api-key")
        is_count = path.endswith("count_tokens")
        try:
            if "anthropic-version" not in headers:
                raise BadRequest("anthropic-version: header is required")
            body = orjson.loads(self._body)
            self._vendor.rules.check(body, is_count=is_count)
        except (BadRequest, orjson.JSONDecodeError) as error:
            return self._refuse(400, "invalid_request_error", str(error))
        if is_count:
            self._seen.note_answered(200)
            return self._answer(200, {"input_tokens": PrefixCache().count(body).total})
        return self._speak(body)

    def _speak(self, body: dict[str, Any]) -> None:
        assert self._seen is not None
        vendor, turn = self._vendor, self._vendor.turn_for(body, self._seen)
        if turn.is_dropped:
            return self._transport.close()
        if turn.status != 200 and turn.stall != "headers":
            extra = {"retry-after": turn.retry_after} if turn.retry_after else {}
            return self._later(turn, lambda: self._refuse(turn.status, turn.error_type, turn.message, headers=extra))
        message_id = vendor.new_id("msg")
        counted = vendor.cache.count(body)
        rendered = render(
            turn,
            counted=counted,
            message_id=message_id,
            model=body["model"],
            new_call_id=lambda: vendor.new_id("toolu"),
        )
        _remember(vendor.rules, turn, rendered)
        self._seen.note_usage(counted, output_tokens=rendered.output_tokens, body_bytes=len(rendered.body))
        if body.get("stream"):
            return self._stream(turn, rendered)
        whole = whole_message(turn, rendered, counted=counted, message_id=message_id, model=body["model"])
        waited = replace(turn, first_ms=turn.first_ms + turn.each_ms * len(rendered.groups))
        return self._later(waited, lambda: self._whole(whole))

    def _whole(self, message: dict[str, Any]) -> None:
        assert self._seen is not None
        self._seen.note_answered(200)
        self._answer(200, message, headers={"request-id": self._vendor.new_id("req")})

    def _later(self, turn: Turn, act: Any) -> None:
        if turn.stall == "headers":
            return
        if not turn.first_ms:
            act()
            return
        loop = asyncio.get_running_loop()
        loop.call_later(turn.first_ms / 1000, lambda: None if self._transport.is_closing() else act())

    def _stream(self, turn: Turn, rendered: Rendered) -> None:
        assert self._seen is not None
        head = SSE_HEAD % self._vendor.new_id("req").encode()
        if Delivery.is_plain(turn):
            self._transport.write(head + b"".join(chunked(group) for group in rendered.groups) + chunked(b""))
            self._seen.note_answered(200)
            return
        self._delivery = Delivery(self._transport, turn, rendered, head=head, seen=self._seen)
        self._delivery.start()


def _remember(rules: Rules, turn: Turn, rendered: Rendered) -> None:
    reasoning = [block for block in rendered.content if "thinking" in block["type"]]
    wanted = [
        whole["id"] for block, whole in zip(turn.blocks, rendered.content, strict=True) if isinstance(block, Call)
    ]
    rules.remember(reasoning, wanted)


def _models() -> dict[str, Any]:
    items = [
        {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-10-07T00:00:00Z",
            "max_input_tokens": 1_000_000,
            "max_tokens": 128_000,
        }
        for name in MODELS
    ]
    return {"data": items, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}


async def serve(host: str, port: int, *, each_ms: float) -> None:
    vendor = Vendor(each_ms=each_ms)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(vendor), host, port, backlog=4096)
    async with server:
        bound = server.sockets[0].getsockname()[1]
        print(f"http://{host}:{bound}", flush=True)
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--each-ms", type=float, default=15, help="between the words of an answer nobody scripted")
    arguments = parser.parse_args()
    try:
        uvloop.run(serve(arguments.host, arguments.port, each_ms=arguments.each_ms))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
