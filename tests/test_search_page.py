"""The search page: every stage as it was, the same figures as the API's, and only what the person may read."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import override_settings

from tests.harness.doors import by_key, by_session
from tests.test_pages import words
from tests.uploading import DEFAULT, GUIDE, added

QUERY = "where do otters sleep"
STAGES = ("keyword", "vector", "fused", "reranked")


def figures(html: str) -> list[list[tuple[int, float] | None]]:
    """Rank and score of each stage, row by row; None where a stage has none."""
    rows = []
    for row in re.findall(r"<tr[^>]*>\s*<td><div class=\"stack.*?</tr>", html, flags=re.DOTALL):
        cells = re.findall(r'<td class="stage".*?</td>', row, flags=re.DOTALL)
        found = [re.search(r'<b>(\d+)</b>.*<data value="([^"]+)">', cell) for cell in cells]
        rows.append([(int(match[1]), float(match[2])) if match else None for match in found])
    return rows


def test_the_page_and_the_endpoint_agree_to_the_digit(server: str) -> None:
    with by_session(server) as alice:
        added(alice)
        added(alice, "lakes.txt", "A lake is still water. Otters fish there at night, and sleep ashore.")
        page = alice.get("/search/", params={"q": QUERY})
        answer = alice.get(f"{DEFAULT}/search", params={"q": QUERY, "limit": 20}).json()
        expected = [
            [
                None if one["ranks"][stage] is None else (one["ranks"][stage], one["scores"][stage])
                for stage in STAGES[: len(figures(page.text)[0])]
            ]
            for one in answer["results"]
        ]
        assert figures(page.text) == expected
        assert len(expected) >= 2
        json_url = unescape(re.search(r'href="([^"]*/search\?[^"]*)"', page.text)[1])  # type: ignore[index]
        assert alice.get(json_url).json() == answer


def test_a_passage_shows_its_words_and_opens_in_its_document(server: str) -> None:
    with by_session(server) as alice:
        document = added(alice)
        page = alice.get("/search/", params={"q": QUERY, "kb": "default_kb"})
        assert "<mark>Otters</mark> <mark>sleep</mark>" in page.text
        link = re.search(r'href="(/knowledge/default_kb/documents/[^"]*)"', page.text)
        assert link
        assert document in link[1]
        opened = alice.get(unescape(link[1]))
        assert re.search(r"<mark[^>]*>Otters sleep afloat", opened.text)


def test_a_missing_stage_is_said_above_the_results_and_in_its_cell(server: str) -> None:
    with by_session(server) as alice:
        added(alice)
        added(alice, "other.txt", "Nothing of the kind.")
        with override_settings(EMBEDDER="none"):
            page = alice.get("/search/", params={"q": "zebra otters"})
            answer = alice.get(f"{DEFAULT}/search", params={"q": "zebra otters"}).json()
        (sentence,) = answer["degraded"]
        assert "found by keyword only" in sentence
        assert sentence in words(page)
        assert {one["ranks"]["vector"] for one in answer["results"]} == {None}
        whole = alice.get("/search/", params={"q": "zebra otters"})
        if any(
            one["ranks"]["keyword"] is None for one in alice.get(f"{DEFAULT}/search?q=zebra+otters").json()["results"]
        ):
            assert "none no shared word" in words(whole)


def test_an_empty_page_asks_and_a_query_that_cannot_be_says_why(server: str) -> None:
    with by_session(server) as alice:
        empty = alice.get("/search/")
        assert "Search test" in words(empty)
        assert "Everything you can read" in words(empty)
        assert "Say what to look for." in words(alice.get("/search/?q="))
        assert "at most 2,000 characters" in words(alice.get("/search/", params={"q": "x" * 2_001}))
        assert alice.get("/search/?q=otters&kb=nowhere").status_code == 404


def test_nothing_found_is_said_with_what_to_do(server: str) -> None:
    with by_session(server) as alice:
        name = alice.post("/api/knowledge-bases", {"name": "Empty"}).json()["slug"]
        assert "Nothing was found for “otters”." in words(alice.get(f"/search/?q=otters&kb={name}"))


@pytest.mark.parametrize(
    "query", ["<script>alert(1)</script>", '"><img src=x>', "{{ 7|add:1 }}", "🦦 ' OR 1=1 --", "%_\\"]
)
def test_a_query_is_text_and_finds_or_finds_not(server: str, query: str) -> None:
    with by_session(server) as alice:
        added(alice, text=f"{GUIDE}\n\n{query}\n")
        page = alice.get("/search/", params={"q": query})
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img" not in page.text


def test_a_stranger_finds_nothing_of_it(server: str) -> None:
    with by_key(server) as alice, by_session(server) as charlie:
        added(alice, "canary.txt", "The zanzibar otter is asleep.")
        page = charlie.get("/search/?q=zanzibar+otter")
        assert "canary.txt" not in page.text
        assert "asleep" not in page.text
