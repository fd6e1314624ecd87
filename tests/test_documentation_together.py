"""Questions that want the same documentation at once: Context7 and the embedder are asked once, and nobody suffers."""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from pytest_django import Settings

from retrieval.docs import Documentation, find_documentation
from retrieval.errors import DocumentationUnavailable, NoDocumentation
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.fakes.context7_library import MIDDLEWARE, Snippet, as_text
from tests.fakes.context7_server import Context7Fake, Said, fails
from tests.fakes.voyage_server import VoyageFake
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks

QUERY = "Next.js protect a route"
STALLED = Said(is_stalled=True)


async def together(*queries: str, seconds: float = 20) -> list[Documentation]:
    return await asyncio.gather(*(find_documentation(query, seconds=seconds) for query in queries))


def asked(fake: Context7Fake) -> tuple[int, int]:
    return len(fake.searches), len(fake.reads)


async def test_what_several_want_is_fetched_once_and_given_to_all(context7_fake: Context7Fake) -> None:
    context7_fake.seconds = 0.2
    first, *others = await together(*[QUERY] * 5, f"  {QUERY}  ")
    assert asked(context7_fake) == (1, 1)
    assert others == [first] * 5


async def test_other_questions_about_the_library_share_its_search_and_read_on_their_own(
    context7_fake: Context7Fake,
) -> None:
    context7_fake.seconds = 0.2
    await together(QUERY, "Next.js metadata of a page")
    assert asked(context7_fake) == (1, 2)


async def test_sections_that_several_read_at_once_are_embedded_once(
    settings: Settings, context7_fake: Context7Fake, voyage_fake: VoyageFake
) -> None:
    settings.EMBEDDER = "voyage"
    mark = uuid.uuid4().hex
    sections = tuple(Snippet(f"Part {number} {mark}", MIDDLEWARE, f"Words {number}.") for number in range(50))
    context7_fake.texts["/vercel/next.js"] = as_text(sections)
    await together(*(f"Next.js {topic} {mark}" for topic in ("part 1", "part 2", "part 3")))
    batches = [seen.body["input"] for seen in voyage_fake.requests if isinstance(seen.body["input"], list)]
    assert sum("Words" in text for batch in batches for text in batch) == 50


async def test_whoever_comes_second_waits_no_longer_than_they_may(context7_fake: Context7Fake) -> None:
    context7_fake.script(STALLED)
    leader = asyncio.create_task(find_documentation(QUERY, seconds=20))
    await _until_asked(context7_fake)
    began = time.monotonic()
    with pytest.raises(DocumentationUnavailable, match="did not answer within 1 seconds"):
        await find_documentation(QUERY, seconds=0.6)
    assert time.monotonic() - began < 1.5
    leader.cancel()


async def test_where_the_first_one_had_no_time_or_luck_the_next_one_tries(context7_fake: Context7Fake) -> None:
    context7_fake.script(STALLED)
    hurried = asyncio.create_task(find_documentation(QUERY, seconds=0.6))
    await _until_asked(context7_fake)
    patient = await together(QUERY, QUERY)
    with pytest.raises(DocumentationUnavailable):
        await hurried
    assert all(found.sections for found in patient)
    assert asked(context7_fake) == (2, 1)


async def test_one_who_leaves_takes_nothing_from_those_who_wait(context7_fake: Context7Fake) -> None:
    context7_fake.seconds = 0.3
    leaver = asyncio.create_task(find_documentation(QUERY))
    await _until_asked(context7_fake)
    follower = asyncio.create_task(find_documentation(QUERY))
    await asyncio.sleep(0.1)
    leaver.cancel()
    assert (await follower).sections
    assert asked(context7_fake) == (1, 1)


@pytest.mark.parametrize("said", [fails(403), fails(404), fails(429, Retry_After="40")], ids=["403", "404", "429"])
async def test_a_refusal_is_told_to_all_and_asked_for_once(context7_fake: Context7Fake, said: Said) -> None:
    context7_fake.seconds = 0.2
    context7_fake.script_texts(said)
    found = await asyncio.gather(*(find_documentation(QUERY) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(each, DocumentationUnavailable | NoDocumentation) for each in found)
    assert len(context7_fake.reads) == 1


def test_two_runs_and_two_calls_of_a_run_fetch_once_and_pay_what_a_call_costs(
    vendor_server: str, anthropic_fake: AnthropicFake, context7_fake: Context7Fake
) -> None:
    context7_fake.seconds = 0.5
    read = Call("retrieve_documentation", {"query": QUERY})
    ranked = calls(Call("rank_sections", {"numbers": [1, 2]}))
    named = calls(Call("name_documentation", {"doc_name": "Next.js", "topic": "protect a route"}))
    anthropic_fake.script(ranked, key="<sections>", forever=True)
    anthropic_fake.script(named, key="<question>", forever=True)

    def ask(key: str) -> tuple[list[bool], int]:
        anthropic_fake.script(calls(read, read), says("Done."), key=key)
        with by_key(vendor_server) as alice:
            frames = alice.events(f"How do I protect a route in Next.js? {key}")
        ok = [result.data["ok"] for result in of_type(frames, "tool_call_result")]
        return ok, frames[-1].data["receipt"]["credits"]

    with nothing_breaks(), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, ["[one]", "[two]"])) == [([True, True], 15)] * 2
    assert asked(context7_fake) == (1, 1)


async def _until_asked(fake: Context7Fake) -> None:
    async with asyncio.timeout(5):
        while not fake.requests:
            await asyncio.sleep(0.01)
