"""CPU of one whole run (2 tool turns, then 200 tokens, zero delay) beside the bare documented SDK loop.

`python -m tests.bench.bench_run --runs 200`: both in this process, in alternating rounds. A whole run is everything
KlerAI does: question, hold, recall, loop, tools, event log, receipt, settle, and one viewer. PostgreSQL's own CPU is
printed beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import anthropic
import django
import psutil
import structlog
import uvloop
from django.conf import settings

settings.DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 16}
django.setup()

from billing.credits import grant
from chat.asking import ask, follow
from chat.orchestrator import Route
from chat.strategies.anthropic import Anthropic
from chat.strategies.patience import Patience
from chat.strategies.retrying import Retrying
from chat.tools.base import ToolContext, ToolOutput
from chat.wiring import Runtime
from klerai.accounts.models import Person
from klerai.database import in_database
from tests.bench.bench_strategy import CARD, QUESTION, SCHEMA, documented
from tests.database import OpenConnections, made_for_this_process
from tests.fakes.anthropic import running_anthropic

ROUND = 10


@dataclass(frozen=True)
class Search:
    """A tool that costs nothing to run, so that everything measured is ours."""

    name: str = "search"
    description: str = "Searches."
    parameters: dict[str, Any] = field(default_factory=lambda: SCHEMA)
    examples: tuple[str, ...] = ()
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return "Search"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput("found", "found")


def make_person() -> Person:
    person = Person.objects.create_user(f"bench-{uuid.uuid4().hex[:8]}@example.org", None)
    grant(person, amount=100_000, reason="bench")
    return person


async def start_runtime(url: str) -> Runtime:
    strategy = Retrying(Anthropic(api_key="bench", base_url=url, patience=Patience(pause_seconds=0.04)))
    return await Runtime.start(route=Route(strategy, CARD), tools={"search": Search()})


async def ours(runtime: Runtime, person: Person, first_ms: list[float]) -> int:
    begin = time.perf_counter()
    words = 0
    run = await ask(runtime, person, {"message": QUESTION}, is_attended=False)
    async for event in follow(runtime, run):
        if event.type == "content_chunk":
            if not words:
                first_ms.append((time.perf_counter() - begin) * 1000)
            words += len(event.data["text"].split())
        elif event.type == "error":
            raise SystemExit(event.data)
    return words


async def cpu_ms(run: Callable[[], Awaitable[int]]) -> float:
    begin = time.process_time()
    for _ in range(ROUND):
        assert await run() == 200
    return (time.process_time() - begin) * 1000 / ROUND


def postgres_cpu(server: psutil.Process) -> float:
    total = 0.0
    for process in [server, *server.children(recursive=True)]:
        with_times = process.cpu_times()
        total += with_times.user + with_times.system
    return total


@contextmanager
def quiet() -> Any:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield


async def compare(url: str, runs: int) -> None:
    person = await in_database(make_person)
    client = anthropic.AsyncAnthropic(api_key="bench", base_url=url, max_retries=0)
    runtime = await start_runtime(url)
    first_ms: list[float] = []
    bare_first_ms: list[float] = []
    await documented(client)
    for _ in range(20):
        await ours(runtime, person, first_ms)
    first_ms.clear()
    pid = int((settings.TEST_DATA_DIR / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    server = psutil.Process(pid)
    theirs, mine = [], []
    database = 0.0
    for _ in range(max(1, runs // ROUND)):
        theirs.append(await cpu_ms(lambda: documented(client, bare_first_ms)))
        before = postgres_cpu(server)
        mine.append(await cpu_ms(lambda: ours(runtime, person, first_ms)))
        database += postgres_cpu(server) - before
    await client.close()
    await runtime.stop()
    reference, measured = statistics.median(theirs), statistics.median(mine)
    print(f"documented SDK loop   {reference:6.2f} ms CPU a run")
    print(f"KlerAI, a whole run   {measured:6.2f} ms CPU a run")
    print(f"ratio                 {measured / reference:6.2f}   (target: at most 1.0)")
    print(f"PostgreSQL            {database * 1000 / (len(mine) * ROUND):6.2f} ms CPU a run")
    bare, first = statistics.median(bare_first_ms), statistics.median(first_ms)
    print(f"first text            {first:6.1f} ms after the question, {bare:.1f} ms in the bare loop")
    print(f"added                 {first - bare:6.1f} ms            (target: at most 10)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    with quiet(), made_for_this_process(), OpenConnections(), running_anthropic() as fake:
        uvloop.run(compare(fake.url, arguments.runs))


if __name__ == "__main__":
    main()
