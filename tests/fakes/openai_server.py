"""A small server that speaks chat completions as one vendor does: `python -m tests.fakes deepseek --port 0`.

Vendors: deepseek, qwen_thinking, qwen_instruct, openai, ollama, gemini, llama_cpp. Those of Ollama and Gemini make
vectors as well. It prints its address as its first line, as the vendor's setting wants it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import uvloop

from tests.fakes.anthropic_script import Thinking, Turn
from tests.fakes.anthropic_server import Connection, Vendor
from tests.fakes.openai_manners import MANNERS, Manners, setting_of
from tests.fakes.openai_rules import BadRequest, Rules
from tests.fakes.openai_told import told
from tests.fakes.openai_wire import error_body, render, whole_completion

CODES = {401: "invalid_api_key", 402: "insufficient_balance", 429: "rate_limit_exceeded", 503: "unavailable_error"}

SAID = ("data_inspection_failed", "insufficient_quota")  # words that say more than their status


class CompatibleVendor(Vendor):
    """A vendor with manners, and the vectors it makes beside answers."""

    def __init__(self, manners: Manners, *, each_ms: float) -> None:
        super().__init__(each_ms=each_ms)
        self.manners = manners
        self.issued = Rules(manners)
        self.vectors = _vectors(manners.name)

    def own_turn(self, body: dict[str, Any]) -> Turn:
        """A model that thinks does so before it says anything."""
        turn = super().own_turn(body)
        return replace(turn, blocks=(Thinking("Let me see what is asked."), *turn.blocks)) if body["thinks"] else turn


class CompatibleConnection(Connection):
    """One HTTP/1.1 connection to a compatible vendor."""

    _vendor: CompatibleVendor

    def _route(self, method: str, path: str) -> None:
        manners, vectors = self._vendor.manners, self._vendor.vectors
        # DeepSeek is served without /v1 as well.
        asked = f"/v1{path}" if manners.name == "deepseek" and not path.startswith("/v1/") else path
        if (method, asked) == ("POST", f"{manners.base}/chat/completions"):
            self._complete(asked)
        elif (method, asked) == ("GET", f"{manners.base}/models"):
            self._answer(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in manners.models]})
        elif method == "POST" and vectors is not None:
            self._answer(*vectors(path, self._headers, orjson.loads(self._body)))
        else:
            self._refuse(404, "not_found_error", f"Not found: {path}")

    def _refuse(self, status: int, kind: str, sentence: str, *, headers: dict[str, str] | None = None) -> None:
        request_id = self._vendor.new_id("req")
        if self._seen is not None:
            self._seen.note_answered(status)
        body = error_body(self._vendor.manners, status, kind, sentence, request_id)
        self._answer(status, body, headers={"x-request-id": request_id, **(headers or {})})

    def _complete(self, path: str) -> None:
        self._seen = self._vendor.records.open(path, self._headers, bytes(self._body), connection=self._number)
        key = self._headers.get("authorization", "").removeprefix("Bearer ")
        if self._vendor.manners.needs_key and (not key or key.startswith("invalid")):
            return self._refuse(401, CODES[401], "Incorrect API key provided.")
        try:
            body = orjson.loads(self._body)
            self._vendor.issued.check(body)
        except BadRequest as error:
            return self._refuse(error.status, error.code, str(error))
        except orjson.JSONDecodeError as error:
            return self._refuse(400, "invalid_request_error", str(error))
        return self._say(body)

    def _say(self, body: dict[str, Any]) -> None:
        assert self._seen is not None
        vendor, asked = self._vendor, told(body, self._vendor.manners)
        turn = vendor.turn_for(asked, self._seen)
        if turn.is_dropped:
            return self._transport.close()
        if turn.status != 200 and turn.stall != "headers":
            extra = {"retry-after": turn.retry_after} if turn.retry_after else {}
            code = turn.error_type if turn.error_type in SAID else CODES.get(turn.status, turn.error_type)
            return self._later(turn, lambda: self._refuse(turn.status, code, turn.message, headers=extra))
        message_id = vendor.new_id("chatcmpl")
        counted = vendor.cache.count(asked)
        chunks = render(
            turn,
            vendor.manners,
            counted=counted,
            message_id=message_id,
            body=body,
            new_call_id=lambda: vendor.new_id("call"),
        )
        for call_id, extra in zip(chunks.call_ids, chunks.extras, strict=True):
            vendor.issued.remember(call_id, reasoning=chunks.reasoning, extra=extra)
        self._seen.note_usage(counted, output_tokens=chunks.output_tokens, body_bytes=len(chunks.body))
        if body.get("stream"):
            return self._stream(turn, chunks)
        whole = whole_completion(chunks, counted=counted, message_id=message_id, model=body["model"])
        waited = replace(turn, first_ms=turn.first_ms + turn.each_ms * len(chunks.groups))
        return self._later(waited, lambda: self._whole(whole))


def _vectors(vendor: str) -> Callable[[str, dict[str, str], Any], tuple[int, Any]] | None:
    """What makes vectors beside answers; it takes half a second to import."""
    if vendor not in ("ollama", "gemini"):
        return None
    from tests.fakes.gemini_server import GeminiFake
    from tests.fakes.ollama_server import OllamaFake
    from tests.fakes.outside import OutsideFake, Seen

    embedder: OutsideFake = OllamaFake() if vendor == "ollama" else GeminiFake()
    return lambda path, headers, body: embedder.answer(Seen(path, {}, headers, body))


async def serve(host: str, port: int, manners: Manners, *, each_ms: float) -> None:
    vendor = CompatibleVendor(manners, each_ms=each_ms)
    server = await asyncio.get_running_loop().create_server(
        lambda: CompatibleConnection(vendor), host, port, backlog=4096
    )
    async with server:
        bound = server.sockets[0].getsockname()[1]
        print(setting_of(manners, f"http://{host}:{bound}"), flush=True)
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vendor", choices=MANNERS, default="openai")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8902)
    parser.add_argument("--each-ms", type=float, default=15, help="between the words of an answer nobody scripted")
    arguments = parser.parse_args()
    try:
        uvloop.run(serve(arguments.host, arguments.port, MANNERS[arguments.vendor], each_ms=arguments.each_ms))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
