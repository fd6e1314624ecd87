"""BT3: whoever watches a run over a bad line sees every event, in order and once; leaving is not stopping."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from chat.models import Run
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.harness.crowd import crowd
from tests.harness.frames import Frame, logged
from tests.harness.reader import Reader, read_events, read_socket
from tests.harness.scenario import Scenario
from tests.harness.soundness import charged
from tests.harness.toxic import LimitData, ResetPeer, ResetSoon, Slicer, Toxic, toxic_proxy
from tests.harness.visits import key_headers, session_headers
from tests.people import make_person
from tests.serving import server_process, vendor_environment, wait_until

pytestmark = pytest.mark.xdist_group("readers")
AT_ONCE = 10
CUTS = 3
LONG = " ".join(f"word{number}" for number in range(120))


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that two tabs and a program watch."""

    run_id: str
    asker: dict[str, str]
    readers: tuple[Reader, ...]


class BadLine:
    """Cuts the first connections that go through it, each in its own way, and leaves later ones alone."""

    def __init__(self, scenario: Scenario, cuts: int) -> None:
        self._dice = scenario.random
        self._left = cuts

    def __call__(self) -> Toxic | None:
        if self._left <= 0:
            return None
        self._left -= 1
        match self._dice.randrange(4):
            case 0:
                return ResetPeer(self._dice.randint(1, 1_200))
            case 1:
                return LimitData(self._dice.randint(1, 1_200))
            case 2:
                return ResetSoon(self._dice.random() * 0.4)
        return Slicer(self._dice.randint(1, 60), 0.001, reset_after_bytes=self._dice.randint(1, 1_200))


@pytest.mark.thorough
@pytest.mark.scenario("BT3")
def test_every_reader_of_a_run_sees_every_event_once_and_in_order_over_a_line_that_breaks(
    scenario: Scenario, anthropic_fake: AnthropicFake, tmp_path: Path
) -> None:
    count = scenario.size(full=500, normal=50, quick=6)
    watched = [_watched() for _ in range(count)]
    scripts = [calls(Call("calculator", {"expression": "17.5 % of 2,480"})), says(LONG, each_ms=8)]
    for one in watched:
        anthropic_fake.script(*scripts, key=f"[{one.run_id}]")
    with server_process(tmp_path, **vendor_environment(anthropic_fake.url)) as server:
        cuts = asyncio.run(_watch_all(server.url, scenario, watched))
        ids = [one.run_id for one in watched]
        wait_until(lambda: not Run.objects.filter(run_id__in=ids, state__in=Run.LIVE).exists(), what="every run to end")

    counted = Counter[str]()
    for one in watched:
        whole = logged(one.run_id)
        for reader in one.readers:
            counted += _differences(reader.frames, whole)
    runs = Run.objects.filter(run_id__in=ids).select_related("person")
    scenario.figures = {
        "readers": 3 * count,
        "cuts": cuts,
        "connections": sum(reader.connections for one in watched for reader in one.readers),
        "events": sum(len(logged(one.run_id)) for one in watched),
    }
    scenario.must_be_zero(
        missing=counted["missing"],
        duplicated=counted["duplicated"],
        out_of_order=counted["out_of_order"],
        changed=counted["changed"],
        stopped_by_leaving=sum(run.state != "completed" for run in runs),
        charged_otherwise=sum(charged(run) != 7 for run in runs),
    )


def _watched() -> Watched:
    person, run_id = make_person(), str(uuid.uuid4())
    key = key_headers(person)
    tab = session_headers("http://127.0.0.1", person)
    return Watched(run_id, key, (Reader(run_id, tab), Reader(run_id, dict(tab)), Reader(run_id, key)))


async def _watch_all(url: str, scenario: Scenario, watched: list[Watched]) -> int:
    places = asyncio.Semaphore(AT_ONCE)
    async with crowd(url) as plain:
        return sum(await asyncio.gather(*(_watch(url, plain, scenario, one, places) for one in watched)))


async def _watch(
    url: str, plain: aiohttp.ClientSession, scenario: Scenario, one: Watched, places: asyncio.Semaphore
) -> int:
    """Ask and leave at once; then three readers, each over a bad line of its own."""
    async with places:
        await _ask_and_leave(plain, one)
        reading = [_read(url, scenario, reader, number) for number, reader in enumerate(one.readers)]
        return sum(await asyncio.gather(*reading))


async def _ask_and_leave(session: aiohttp.ClientSession, one: Watched) -> None:
    body = {"message": f"Tell me. [{one.run_id}]", "run_id": one.run_id}
    headers = {**one.asker, "Accept": "text/event-stream"}
    async with session.post("/api/chat", json=body, headers=headers) as response:
        assert response.status == 200, await response.text()


async def _read(url: str, scenario: Scenario, reader: Reader, number: int) -> int:
    with toxic_proxy(url, BadLine(scenario, CUTS)) as proxy:
        origin = {"Origin": proxy.url} if "Cookie" in reader.headers else {}
        reader.headers = {**reader.headers, **origin}
        async with crowd(proxy.url) as session:
            await (read_events if number == 2 else read_socket)(session, reader)
        return proxy.cuts


def _differences(seen: list[Frame], whole: list[Frame]) -> Counter[str]:
    numbers = [frame.seq for frame in seen]
    by_seq = {frame.seq: frame for frame in whole}
    return Counter(
        missing=len(by_seq.keys() - set(numbers)),
        duplicated=len(numbers) - len(set(numbers)),
        out_of_order=sum(after <= before for before, after in pairwise(numbers)),
        changed=sum(frame != by_seq.get(frame.seq) for frame in seen),
    )


def test_a_fault_in_reading_would_be_counted() -> None:
    one, two, three = (Frame(seq, "content_chunk", {"text": str(seq)}) for seq in (1, 2, 3))
    assert _differences([one, three, two, two], [one, two, three]) == Counter(duplicated=1, out_of_order=2)
    assert _differences([one], [one, two, three]) == Counter(missing=2)
