"""From a question to sections of a documentation: product, library, text, ranking; with a model and without."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest
from pytest_django import Settings

from retrieval.docs import Documentation, Form, find_documentation
from retrieval.documentation.asked import guess
from retrieval.errors import NoDocumentation
from tests.fakes.context7_library import NEXT_JS
from tests.fakes.context7_server import Context7Fake, Said


@dataclass(slots=True)
class Model:
    """A small model that fills in forms as it is told, and gives nothing where it is not told."""

    fields: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, task: str, material: str, *, form: Form) -> Mapping[str, Any] | None:
        self.asked.append((form.name, material))
        return self.fields.get(form.name)


def titles(found: Documentation) -> list[str]:
    return [ranked.section.title for ranked in found.sections]


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_question_leads_to_the_sections_that_answer_it(
    settings: Settings, context7_fake: Context7Fake, version: str
) -> None:
    settings.CONTEXT7 = replace(settings.CONTEXT7, version=version)
    found = await find_documentation("How do I protect a route in Next.js with a session cookie?")
    assert found.library.id == "/vercel/next.js"
    first = found.sections[0]
    assert first.section.title == "Protect a route in middleware"
    assert first.section.url.startswith("https://github.com/vercel/next.js/")
    assert "NextResponse.redirect" in first.section.text
    assert (len(found.sections), found.count) == (6, 8)
    assert (first.ranks.keyword, first.ranks.vector, first.ranks.fused) == (1, 1, 1)
    assert first.scores.fused == pytest.approx(2 / 61)
    (searched,), (read,) = context7_fake.searches, context7_fake.reads
    assert read.headers["authorization"] == searched.headers["authorization"] == f"Bearer {settings.CONTEXT7.key}"
    if version == "v1":
        assert (searched.path, searched.parameters) == ("/api/v1/search", {"query": "Next.js"})
        assert read.path == "/api/v1/vercel/next.js"
        assert read.parameters == {"type": "txt", "tokens": "50000", "topic": found.topic}
    else:
        assert searched.parameters == {"libraryName": "Next.js", "query": found.topic}
        assert read.parameters == {"libraryId": "/vercel/next.js", "query": found.topic, "type": "json"}


async def test_text_is_cut_at_its_dashes_in_both_layouts_and_never_inside_code(
    settings: Settings, context7_fake: Context7Fake
) -> None:
    settings.CONTEXT7 = replace(settings.CONTEXT7, version="v1")
    newer = await find_documentation("Next.js metadata between lines of dashes")
    context7_fake.layout = "older"
    older = await find_documentation("Next.js front matter dashes")
    for found in (newer, older):
        assert found.count == len(NEXT_JS.text)
        matter = next(ranked.section for ranked in found.sections if ranked.section.title == "Front matter of a page")
        assert matter.text.count("-" * 32) == 2
        assert f"```yaml\n{'-' * 32}\n### title: Hello" in matter.text
        assert matter.url.endswith("middleware.mdx#front-matter")
        assert matter.text.startswith("### Front matter of a page\n\nA page may begin with")
        whole = "".join(ranked.section.text for ranked in found.sections)
        assert not re.search(r"CODE SNIPPETS|TITLE:|(?i:\nsource:)|===", whole)


async def test_text_in_place_of_json_and_parts_of_no_known_form_are_read_all_the_same(
    context7_fake: Context7Fake,
) -> None:
    context7_fake.texts["/vercel/next.js"] = (
        f"Words about zebras.\n{'-' * 25}\n| a |\n{'-' * 19}\n```\nnever closed\n{'-' * 40}\n"
        "### Last\nOn giraffes.\x1b[31m\x00"
    )
    found = await find_documentation("Next.js giraffes")
    assert titles(found)[0] == "Last"
    assert found.count == 3
    assert found.sections[0].section.text == "### Last\nOn giraffes.[31m"
    assert {ranked.section.url for ranked in found.sections} == {""}


async def test_only_addresses_a_person_may_be_sent_to_become_links(context7_fake: Context7Fake) -> None:
    bad = ("javascript:alert(1)", "https://user:pass@evil.example/", "file:///etc/passwd", 'https://a.example/">x')
    snippets = [{"pageId": address, "breadcrumb": "Zebra", "content": "Zebras."} for address in bad]
    snippets += [
        {"pageId": 7},
        "zebra",
        {"breadcrumb": "Zebra", "pageId": "https://good.example/#z", "content": "Zebra"},
    ]
    context7_fake.script_texts(Said(body={"codeSnippets": None, "infoSnippets": snippets}))
    found = await find_documentation("Next.js zebra")
    assert {ranked.section.url for ranked in found.sections} == {"", "https://good.example/#z"}
    assert found.count == 5


async def test_a_model_names_the_product_picks_the_library_and_ranks_the_sections(context7_fake: Context7Fake) -> None:
    model = Model(
        {
            "name_documentation": {"doc_name": "Twitter, or X API", "topic": "posting"},
            "pick_library": {"id": "/websites/x_developer"},
            "rank_sections": {"numbers": [3, 99, 2, True, 3, "1"]},
        }
    )
    fused = await find_documentation("posting", small=Model({**model.fields, "rank_sections": {}}))
    found = await find_documentation("How does one say something to all the blue bird's followers?", small=model)
    assert (found.name, found.topic, found.library.id) == ("Twitter, or X API", "posting", "/websites/x_developer")
    assert titles(found) == [titles(fused)[place] for place in (2, 1, 0)]
    assert [ranked.ranks.reranked for ranked in found.sections] == [1, 2, None]
    steps = dict(model.asked)
    assert list(steps) == ["name_documentation", "pick_library", "rank_sections"]
    assert "/someone/twitter-tools: Twitter Tools (trust 3, 12 snippets)" in steps["pick_library"]
    assert all(title in steps["rank_sections"] for title in titles(fused))


async def test_a_model_that_picks_what_is_not_there_or_says_nonsense_is_passed_over(
    settings: Settings, context7_fake: Context7Fake
) -> None:
    nonsense: list[dict[str, Any]] = [
        {
            "name_documentation": {"doc_name": 7},
            "pick_library": {"id": "/../../admin"},
            "rank_sections": {"numbers": 3},
        },
        {"name_documentation": {"topic": "x"}, "pick_library": {"id": None}, "rank_sections": {"numbers": [{}, -1]}},
    ]
    alone = await find_documentation("Twitter OAuth setup")
    for fields in nonsense:
        assert await find_documentation("Twitter OAuth setup", small=Model(fields)) == alone
    settings.CONTEXT7 = replace(settings.CONTEXT7, reranks=False)
    unasked = Model({"rank_sections": {"numbers": [3]}})
    assert await find_documentation("Twitter OAuth setup", small=unasked) == alone
    assert "rank_sections" not in dict(unasked.asked)


async def test_a_renamed_product_is_understood_with_a_model_and_without(context7_fake: Context7Fake) -> None:
    alone = await find_documentation("Twitter OAuth setup")
    model = Model({"name_documentation": {"doc_name": "X API", "topic": "OAuth setup"}})
    helped = await find_documentation("Twitter OAuth setup", small=model)
    for found in (alone, helped):
        assert (found.name, found.topic) == ("X API", "OAuth setup")
        assert found.library.id == "/websites/x_developer"
        assert "OAuth" in titles(found)[0]
    assert context7_fake.searches[0].parameters["libraryName"] == "X API"


@pytest.mark.parametrize(
    ("query", "name", "topic"),
    [
        ("Twitter OAuth", "X API", "OAuth"),
        ("How do I use OAuth with Twitter?", "X API", "OAuth"),
        ("set up OAuth for Twitter's API", "X API", "set up OAuth"),
        ("Next.js middleware authentication", "Next.js", "middleware authentication"),
        ("middleware authentication in next.js", "next.js", "middleware authentication"),
        ("How do I validate a form with React Hook Form?", "React Hook Form", "validate form"),
        ("Show me how Django paginates a query set", "Django", "paginates query set"),
        ("react query cache invalidation", "TanStack Query", "cache invalidation"),
        ("documentation of FastAPI", "FastAPI", ""),
        ("numpy", "numpy", ""),
        ("?", "?", ""),
    ],
)
def test_without_a_model_the_words_tell_product_and_topic(query: str, name: str, topic: str) -> None:
    asked = guess(query)
    assert (asked.names[0], asked.topic) == (name, topic)


async def test_a_product_that_nobody_knows_is_said_so(context7_fake: Context7Fake) -> None:
    with pytest.raises(NoDocumentation, match="no library called “Zyzzyva”"):
        await find_documentation("Zyzzyva basics")


def test_the_fakes_are_listed_and_one_can_be_started_by_hand() -> None:
    command = [sys.executable, "-m", "tests.fakes"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {"anthropic", "context7", "voyage"} <= set(listed.split())
    wrong = subprocess.run([*command, "telepathy"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout.split("\n")[0]) == (2, "There is no fake called telepathy.")
    with subprocess.Popen([*command, "context7", "--port", "0"], stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            address = started.stdout.readline().strip()
            found = httpx2.get(f"{address}/v1/search", params={"query": "Next.js"}, trust_env=False).json()
        finally:
            started.terminate()
    assert found["results"][0]["id"] == "/vercel/next.js"
