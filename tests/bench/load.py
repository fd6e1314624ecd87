"""A bounded load of WebSocket streams, for bench_streams.

`python -m tests.bench.load PORT KIND TOKENFILE N ROUNDS PLAN` prints one JSON line: the time to the first token and
the tokens that came. KIND is `klerai` or `relay`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

import orjson
import uvloop
from websockets.asyncio.client import connect

SPREAD_SECONDS = 1.0
TIMEOUT_SECONDS = 90


async def one(kind: str, port: int, token: str, *, delay: float, rounds: int, plan: str) -> tuple[list[float], int]:
    """The seconds to each first token, and how many tokens came."""
    firsts: list[float] = []
    tokens = 0
    headers = {"Authorization": f"Bearer {token}"} if kind == "klerai" else {}
    url = f"ws://127.0.0.1:{port}/ws/chat/"
    async with connect(url, additional_headers=headers, max_size=None, compression=None, proxy=None) as socket:
        await asyncio.sleep(delay)
        for _ in range(rounds):
            begin, first = time.perf_counter(), 0.0
            ask = {"type": "ask", "message": plan} if kind == "klerai" else {"prompt": plan}
            await socket.send(orjson.dumps(ask).decode())
            async for raw in socket:
                words, is_over = _read(kind, raw)
                if words and not first:
                    first = time.perf_counter() - begin
                tokens += words
                if is_over:
                    break
            firsts.append(first)
    return firsts, tokens


def _read(kind: str, raw: str | bytes) -> tuple[int, bool]:
    frame = orjson.loads(raw)
    if kind == "relay":
        return frame.get("t", "").count(" "), "done" in frame
    if frame["type"] == "content_chunk":
        return frame["data"]["text"].count(" "), False
    return 0, frame["type"] in ("message_complete", "error")


async def main(port: int, kind: str, tokens: list[str], n: int, rounds: int, plan: str) -> None:
    tasks = [
        one(kind, port, tokens[index % len(tokens)], delay=SPREAD_SECONDS * index / n, rounds=rounds, plan=plan)
        for index in range(n)
    ]
    begin = time.perf_counter()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        results = await asyncio.gather(*tasks)
    firsts = sorted(first for found, _ in results for first in found)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - begin,
                "tokens": sum(count for _, count in results),
                "first_p50_ms": statistics.median(firsts) * 1000,
                "first_p95_ms": firsts[int(len(firsts) * 0.95)] * 1000,
            }
        )
    )


if __name__ == "__main__":
    port, kind, file, n, rounds, plan = sys.argv[1:]
    uvloop.run(main(int(port), kind, Path(file).read_text().split(), int(n), int(rounds), plan))
