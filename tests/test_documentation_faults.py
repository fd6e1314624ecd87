"""When Context7 fails: what is asked again, what a kept copy answers, and in which words the rest is told."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from email.utils import formatdate

import pytest
from django.utils import timezone
from pytest_django import Settings

from klerai.database import in_database
from retrieval.docs import Documentation, find_documentation
from retrieval.errors import DocumentationUnavailable, NoDocumentation
from retrieval.models import LibrarySearch, LibraryText
from retrieval.tasks import forget_old_documentation
from tests.fakes.context7_server import Context7Fake, Said, fails

QUERY = "Next.js protect a route"
TROUBLE = (Said(is_cut=True, body="half of it"), fails(500), fails(503), fails(504))


both_versions = pytest.mark.parametrize("version", ["v1", "v2"])


async def look_up(query: str = QUERY, *, seconds: float = 20) -> Documentation:
    return await find_documentation(query, seconds=seconds)


async def age(**by: float) -> None:
    """Let what is kept have been fetched earlier."""
    for model in (LibrarySearch, LibraryText):
        await in_database(model.objects.update, fetched_at=timezone.now() - timedelta(**by))


async def test_the_same_question_is_answered_from_the_copy(context7_fake: Context7Fake) -> None:
    first = await look_up()
    again = await look_up("  Next.js   protect a   ROUTE")
    assert again.library == first.library
    assert len(context7_fake.requests) == 2
    await age(hours=7)
    await look_up()
    assert (len(context7_fake.searches), len(context7_fake.reads)) == (1, 2)
    await age(hours=25)
    await look_up()
    assert (len(context7_fake.searches), len(context7_fake.reads)) == (2, 3)


@pytest.mark.thorough
@pytest.mark.parametrize("said", TROUBLE, ids=["cut", "500", "503", "504"])
async def test_trouble_that_passes_is_asked_again(context7_fake: Context7Fake, said: Said) -> None:
    context7_fake.script(said)
    context7_fake.script_texts(said)
    assert (await look_up()).sections
    assert (len(context7_fake.searches), len(context7_fake.reads)) == (2, 2)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (fails(500), "Context7 has a fault (HTTP 500)."),
        (fails(429, Retry_After="40"), "Context7 wants fewer requests: try again in 40 seconds."),
        (fails(402), "The spending limit at Context7 is reached."),
        (Said(202, {"error": "library_not_finalized"}), "Context7 is still preparing this library."),
        (Said(is_stalled=True), "Context7 did not answer within"),
    ],
    ids=["500", "429", "402", "202", "stalled"],
)
async def test_an_old_copy_stands_in_and_that_is_said(context7_fake: Context7Fake, said: Said, words: str) -> None:
    fresh = await look_up()
    await age(days=2)
    context7_fake.script(said)
    context7_fake.script_texts(*[said] * 3)
    stale = await look_up(seconds=1.5 if said.is_stalled else 20)
    assert (fresh.is_stale, stale.is_stale) == (False, True)
    assert [ranked.section for ranked in stale.sections] == [ranked.section for ranked in fresh.sections]
    day = timezone.now() - timedelta(days=2)
    for note, what in zip(stale.notes, ("the list of libraries", "the text"), strict=True):
        assert note.startswith(words)
        assert f"Until then {what} is from a copy of {day.day} {day:%B %Y}" in note


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (fails(400), r"refused the question \(HTTP 400\)"),
        (fails(401), "Put a valid CONTEXT7_API_KEY in the settings"),
        (fails(403), "Put a valid CONTEXT7_API_KEY in the settings"),
        (fails(402), "spending limit at Context7"),
        (fails(422), r"refused the question \(HTTP 422\)"),
        (fails(500), r"has a fault \(HTTP 500\)"),
        (Said(202, {"error": "library_not_finalized"}), "still preparing this library"),
        (Said(301, headers=(("Location", "http://127.0.0.1:9/"),)), "Check CONTEXT7_BASE_URL"),
        (Said(301, {"redirectUrl": "http://127.0.0.1:9/x"}), "Check CONTEXT7_BASE_URL"),
        (Said(body={"error": "what"}), "cannot be read"),
        (Said(is_stalled=True), "did not answer within"),
        (Said(is_endless=True), "more than 8 MB"),
    ],
)
async def test_without_a_copy_the_reason_is_told_in_our_words(
    context7_fake: Context7Fake, said: Said, words: str
) -> None:
    context7_fake.script_texts(*[said] * 3)
    with pytest.raises(DocumentationUnavailable, match=words) as raised:
        await look_up(seconds=1.5 if said.is_stalled else 20)
    assert "instructions" not in str(raised.value)
    assert not await in_database(LibraryText.objects.exists)


async def test_an_old_copy_never_stands_in_for_what_is_refused_or_gone(context7_fake: Context7Fake) -> None:
    await look_up()
    await age(hours=7)
    context7_fake.script_texts(fails(403))
    with pytest.raises(DocumentationUnavailable, match="CONTEXT7_API_KEY"):
        await look_up()


@both_versions
async def test_a_library_that_moved_is_followed_once(
    settings: Settings, context7_fake: Context7Fake, version: str
) -> None:
    settings.CONTEXT7 = replace(settings.CONTEXT7, version=version)
    found = await look_up("Old Home protect a route")
    assert found.sections[0].section.title == "Protect a route in middleware"
    assert len(context7_fake.reads) == 2
    await look_up("Old Home protect a route")
    assert len(context7_fake.reads) == 2
    with pytest.raises(DocumentationUnavailable, match="moved this library more than once"):
        await look_up("Runaway protect a route")
    assert len(context7_fake.reads) == 4


@both_versions
async def test_a_library_that_is_gone_is_forgotten_and_searched_for_anew(
    settings: Settings, context7_fake: Context7Fake, version: str
) -> None:
    settings.CONTEXT7 = replace(settings.CONTEXT7, version=version)
    await look_up("React Hook Form validation")
    await age(hours=7)
    context7_fake.shelves = tuple(shelf for shelf in context7_fake.shelves if "hook-form" not in shelf.id)
    found = await look_up("React Hook Form validation")
    assert found.library.id == "/facebook/react"
    assert len(context7_fake.searches) == 2
    kept = await in_database(list, LibraryText.objects.values_list("library", flat=True))
    assert kept == ["/facebook/react"]


async def test_a_gone_library_without_another_is_told(context7_fake: Context7Fake) -> None:
    context7_fake.script_texts(fails(404))
    with pytest.raises(NoDocumentation, match="does not have the documentation of Next"):
        await look_up()
    assert not await in_database(LibrarySearch.objects.exists)


@both_versions
@pytest.mark.parametrize("body", ["", "No content available", "No context data available for this library."])
async def test_an_empty_answer_is_nothing_found_and_not_kept(
    settings: Settings, context7_fake: Context7Fake, body: str, version: str
) -> None:
    settings.CONTEXT7 = replace(settings.CONTEXT7, version=version)
    context7_fake.script_texts(Said(body=body))
    with pytest.raises(NoDocumentation, match="nothing on “protect route” in the documentation of Next"):
        await look_up("Next.js protect route")
    assert (await look_up("Next.js protect route")).sections


async def test_libraries_that_are_not_ready_are_never_picked(context7_fake: Context7Fake) -> None:
    with pytest.raises(NoDocumentation):
        await look_up("Half Read basics")
    with pytest.raises(DocumentationUnavailable, match="still preparing"):
        await look_up("Unready basics")
    assert (await look_up("Bare basics")).library.id == "/websites/bare"


async def test_after_a_limit_nobody_asks_until_it_is_over(context7_fake: Context7Fake) -> None:
    context7_fake.script(fails(429, Retry_After="40", RateLimit_Limit="10", RateLimit_Remaining="0"))
    for query in (QUERY, "X API posting"):
        with pytest.raises(DocumentationUnavailable, match="try again in 40 seconds"):
            await look_up(query)
    assert len(context7_fake.requests) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("header", ["Retry-After: 1", "date", "reset"])
async def test_a_short_wait_that_is_asked_for_is_waited(context7_fake: Context7Fake, header: str) -> None:
    soon = time.time() + 2
    headers = {"date": {"Retry_After": formatdate(soon, usegmt=True)}, "reset": {"RateLimit_Reset": f"{soon:.0f}"}}
    context7_fake.script(fails(429, **headers.get(header, {"Retry_After": "1"})))
    began = time.monotonic()
    assert (await look_up()).sections
    assert time.monotonic() - began > 0.4


async def test_where_a_copy_is_at_hand_trouble_is_waited_for_once(context7_fake: Context7Fake) -> None:
    await look_up()
    await age(days=2)
    context7_fake.script(fails(503))
    for _ in range(3):
        assert (await look_up()).is_stale
    assert len(context7_fake.requests) == 3


async def test_nobody_at_the_address_is_told_with_the_setting(settings: Settings) -> None:
    assert settings.CONTEXT7.base_url == "http://127.0.0.1:9/api"
    with pytest.raises(DocumentationUnavailable, match=r"cannot be reached\. Check CONTEXT7_BASE_URL"):
        await look_up()


async def test_copies_of_last_month_are_forgotten(context7_fake: Context7Fake) -> None:
    await look_up()
    await age(days=29)
    await in_database(forget_old_documentation, 0)
    assert await in_database(LibraryText.objects.exists)
    await age(days=31)
    await in_database(forget_old_documentation, 0)
    assert not await in_database(LibraryText.objects.exists)
    assert not await in_database(LibrarySearch.objects.exists)
