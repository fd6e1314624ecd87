"""T4: keywords lead later searches to what the web said, under rules a model is told, and never to a stranger's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from chat.wiring import Runtime
from retrieval.models import Keyword, KeywordLink, WebResult
from retrieval.web_results import found_by_keywords
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.fakes.outside import running
from tests.fakes.perplexity_server import PerplexityFake, Said, result
from tests.fakes.web import KEY
from tests.harness.doors import Visitor, by_key
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks
from tests.people import make_person
from tests.serving import served, vendor_settings
from tests.test_citations import LEAVE, handbook, sent

SHARES = Said(
    "Apple closed at 231.40 dollars [1].",
    [result(1, "Markets", "https://markets.example/aapl", "AAPL closed at 231.40 USD on Friday.", "2026-11-20")],
)
KEYWORDS = ["AAPL stock price", "Apple shares", "2026 market trends"]


@pytest.fixture(scope="module")
def online(database: object, anthropic_server: AnthropicFake) -> Iterator[str]:
    with running(PerplexityFake(says=[SHARES])) as web:
        keyed = {"PERPLEXITY_API_KEY": KEY, "PERPLEXITY_BASE_URL": web.url}
        with override_settings(**vendor_settings(anthropic_server.url), **keyed), served(start=Runtime.start) as url:
            yield url


def searched(alice: Visitor, fake: AnthropicFake, *, query: str = "AAPL price today") -> tuple[str, WebResult]:
    """A conversation in which the web was asked, and what was kept of it; the product's own keywords are taken away."""
    fake.script(calls(Call("perplexity_search", {"query": query})), says("231.40 [1]."))
    answer = alice.answer("What is Apple worth?")
    row = WebResult.objects.filter(person=alice.person).latest("created_at")
    row.links.all().delete()
    Keyword.objects.filter(person=alice.person, links=None).delete()
    return answer["conversation_id"], row


def indexing(row: WebResult, keywords: Any = KEYWORDS, **more: Any) -> Call:
    ids = {"query_id": row.question_ref, "perplexity_result_id": row.ref}
    return Call("index_keywords", {"keywords": keywords, **ids, **more})


def outcome(alice: Visitor, fake: AnthropicFake, conversation: str, call: Call) -> tuple[bool, str, int]:
    """Whether one call in a next question succeeds, what the model reads of it, and what the question costs."""
    fake.script(calls(call), says("Noted."))
    frames = alice.events("Remember that.", conversation_id=conversation)
    (end,) = of_type(frames, "tool_call_result")
    items = alice.get(f"/api/conversations/{conversation}/memory?track=full").json()["items"]
    text = next(item["text"] for item in items if item["id"] == end.data["id"])
    return end.data["ok"], text, frames[-1].data["receipt"]["credits"]


def test_keywords_are_indexed_in_the_same_question_for_nothing(online: str, anthropic_fake: AnthropicFake) -> None:
    by_result = {"keywords": KEYWORDS, "query_id": "q1", "perplexity_result_id": "q1-t1"}
    anthropic_fake.script(
        calls(Call("perplexity_search", {"query": "AAPL price"})),
        calls(Call("index_keywords", by_result)),
        says("231.40 dollars [1]."),
    )
    with nothing_breaks(), by_key(online) as alice:
        answer = alice.answer("What is Apple worth?")
        kept = alice.get(f"/api/conversations/{answer['conversation_id']}/memory/q1-t2").json()
        links = KeywordLink.objects.filter(keyword__person=alice.person)
        rows = sorted(links.values_list("keyword__text", "question_ref", "result__query"))
    assert json.loads(kept["text"]) == {"indexed": True, "keyword_count": 3}
    assert rows == sorted((keyword, "q1", "AAPL price") for keyword in KEYWORDS)
    assert answer["receipt"]["credits"] == 5 + 2


def test_a_later_search_finds_the_result_through_a_keyword_marked_and_dated(
    online: str, anthropic_fake: AnthropicFake
) -> None:
    with nothing_breaks(), by_key(online) as alice:
        document = handbook(alice.person)
        conversation, row = searched(alice, anthropic_fake)
        outcome(alice, anthropic_fake, conversation, indexing(row))
        WebResult.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=3, hours=2))
        anthropic_fake.script(
            calls(Call("knowledge_base_search", {"query": "leave days; the price of AAPL stock"})),
            says("Leave is thirty days [1], Apple stood at 231.40 [2]."),
        )
        frames = alice.events("And now?")
        anthropic_fake.script(calls(Call("rag_search", {"query": "apple share"})), says("As above [1]."))
        research = alice.answer("And the shares?", mode="research")
    text = sent(anthropic_fake)[-3].replace("\\n", "\n").replace('\\"', '"')
    assert "1 earlier answer from the web, found through their keywords." in text
    assert '<web_answer origin="web" age="3 days" asked="' in text
    assert 'keywords="AAPL stock price"' in text
    assert "Apple closed at 231.40 dollars [2]." in text
    assert text.index(LEAVE.strip()) < text.index("<web_answer")
    (end,) = of_type(frames, "tool_call_result")
    assert end.data["summary"].endswith("; 1 earlier answer from the web (3 days old)")
    inside, outside = frames[-1].data["citations"]
    assert (inside["origin"], inside["document_id"]) == ("internal", str(document.pk))
    assert (outside["origin"], outside["url"]) == ("web", "https://markets.example/aapl")
    assert [citation["origin"] for citation in research["citations"]] == ["web"]


def test_a_search_without_a_keyword_in_it_finds_nothing_of_the_web(online: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(online) as alice:
        conversation, row = searched(alice, anthropic_fake)
        outcome(alice, anthropic_fake, conversation, indexing(row))
        found = {
            query: [one.ref for one in found_by_keywords(alice.person, query)]
            for query in (
                "TSLA stock price",
                "apple pie",
                "",
                "market 2026",
                "the",
                "MARKET trend of 2026?",
                "APPLE SHARES",
            )
        }
    assert [query for query, refs in found.items() if refs] == ["MARKET trend of 2026?", "APPLE SHARES"]


def test_nobody_finds_opens_or_indexes_what_the_web_told_a_stranger(online: str, anthropic_fake: AnthropicFake) -> None:
    with nothing_breaks(), by_key(online) as alice, by_key(online) as charlie:
        conversation, row = searched(alice, anthropic_fake)
        assert outcome(alice, anthropic_fake, conversation, indexing(row))[0]
        anthropic_fake.script(says("Hello."))
        of_charlie = charlie.answer("Hello?")["conversation_id"]
        is_ok, text, _ = outcome(charlie, anthropic_fake, of_charlie, indexing(row))
        anthropic_fake.script(
            calls(
                Call("knowledge_base_search", {"query": "AAPL stock price, Apple shares"}),
                Call("retrieve_full_context", {"id": row.ref}),
            ),
            says("Nothing."),
        )
        answer = charlie.answer("AAPL?")
    assert not is_ok
    assert f"There is no web result “{row.ref}”." in text
    assert "231.40" not in sent(anthropic_fake)[-1]
    assert answer["citations"] == []
    assert found_by_keywords(charlie.person, "AAPL stock price") == []
    assert not Keyword.objects.filter(person=charlie.person).exists()


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        (["AAPL stock price", "Apple shares"], "2 were given."),
        ([f"keyword number {number}" for number in range(11)], "11 were given."),
        ([], "0 were given."),
        (["the", *KEYWORDS], "“the” is too generic."),
        (["a", *KEYWORDS], "“a” is too short."),
        (["information", *KEYWORDS], "“information” is too generic."),
        (["The Information", *KEYWORDS], "“The Information” is too generic."),
        (["latest news", "results", *KEYWORDS], "“latest news” is too generic. “results” is too generic."),
        (["", *KEYWORDS], "One is empty."),
        (["   ", *KEYWORDS], "One is empty."),
        (["x" * 51, *KEYWORDS], "has 51 characters."),
        (["!!!", *KEYWORDS], "“!!!” has no word in it."),
    ],
)
def test_keywords_that_are_no_use_are_refused_with_guidance_and_nothing_is_stored(
    online: str, anthropic_fake: AnthropicFake, keywords: list[str], words: str
) -> None:
    with nothing_breaks(), by_key(online) as alice:
        conversation, row = searched(alice, anthropic_fake)
        is_ok, text, credits = outcome(alice, anthropic_fake, conversation, indexing(row, keywords))
        stored = Keyword.objects.filter(person=alice.person).count()
    assert not is_ok
    assert words in text
    assert "Give 3 to 10 keywords of 2 to 50 characters" in text
    assert "“AAPL stock price”" in text
    assert (credits, stored) == (5, 0)


@pytest.mark.parametrize(
    "keywords",
    [["xy", "C++ templates", "日本"], ["x" * 50, "2026", "naïve Bayes"], ["the Beatles", "data mining", "C#"]],
)
def test_keywords_at_the_edges_are_fine(online: str, anthropic_fake: AnthropicFake, keywords: list[str]) -> None:
    with nothing_breaks(), by_key(online) as alice:
        conversation, row = searched(alice, anthropic_fake)
        is_ok, text, _ = outcome(alice, anthropic_fake, conversation, indexing(row, keywords))
    assert is_ok, text


def test_duplicates_by_case_spacing_and_plural_are_one_keyword_that_leads_to_every_result(
    online: str, anthropic_fake: AnthropicFake
) -> None:
    again = ["aapl  Stock Prices", "APPLE SHARE", "apple shares", "2026 Market Trend", "Cupertino"]
    with nothing_breaks(), by_key(online) as alice:
        conversation, first = searched(alice, anthropic_fake)
        assert outcome(alice, anthropic_fake, conversation, indexing(first))[0]
        other, second = searched(alice, anthropic_fake, query="AAPL next week")
        is_ok, text, _ = outcome(alice, anthropic_fake, other, indexing(second, again))
        _, repeated, _ = outcome(alice, anthropic_fake, other, indexing(second, again))
        keywords = sorted(Keyword.objects.filter(person=alice.person).values_list("text", flat=True))
        found = [one.ref for one in found_by_keywords(alice.person, "stock prices of AAPL")]
        links = KeywordLink.objects.filter(keyword__person=alice.person).count()
        alice.http.delete(f"/api/conversations/{other}").raise_for_status()
        left = sorted(Keyword.objects.filter(person=alice.person).values_list("text", flat=True))
    assert is_ok
    assert json.loads(text) == {"indexed": True, "merged": True, "keyword_count": 4}
    assert json.loads(repeated) == json.loads(text)
    assert keywords == sorted([*KEYWORDS, "Cupertino"])
    assert found == [second.ref, first.ref]
    assert links == 3 + 4
    assert left == sorted(KEYWORDS)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"query_id": "q9"}, "There is no question “q9” in this conversation. This question is q2."),
        ({"query_id": "q1-t1"}, "There is no question “q1-t1”"),
        ({"query_id": "the last one"}, "There is no question “the last one”"),
        ({"perplexity_result_id": "web-00000000"}, "There is no web result “web-00000000”."),
        ({"perplexity_result_id": "q1-t7"}, "There is no web result “q1-t7”."),
        ({"perplexity_result_id": "' OR 1=1 --"}, "There is no web result"),
    ],
)
def test_ids_that_are_not_there_are_said_to_be_so(
    online: str, anthropic_fake: AnthropicFake, more: dict[str, str], words: str
) -> None:
    with nothing_breaks(), by_key(online) as alice:
        conversation, row = searched(alice, anthropic_fake)
        is_ok, text, credits = outcome(alice, anthropic_fake, conversation, indexing(row, **more))
    assert not is_ok
    assert words in text
    assert credits == 5


def test_of_a_temporary_conversation_nothing_is_indexed(online: str, anthropic_fake: AnthropicFake) -> None:
    ids = {"query_id": "q1", "perplexity_result_id": "q1-t1"}
    anthropic_fake.script(
        calls(Call("perplexity_search", {"query": "AAPL"})),
        calls(Call("index_keywords", {"keywords": KEYWORDS, **ids})),
        says("231.40 [1]."),
    )
    with nothing_breaks(), by_key(online) as alice:
        answer = alice.answer("What is Apple worth?", temporary=True)
        rows = (
            WebResult.objects.filter(person=alice.person).count() + Keyword.objects.filter(person=alice.person).count()
        )
    assert "Nothing is kept of a temporary conversation" in sent(anthropic_fake)[-1]
    assert (answer["receipt"]["credits"], rows) == (7, 0)


def test_a_deleted_person_leaves_neither_results_nor_keywords(online: str, anthropic_fake: AnthropicFake) -> None:
    person = make_person()
    with nothing_breaks(), by_key(online, person) as alice:
        conversation, row = searched(alice, anthropic_fake)
        outcome(alice, anthropic_fake, conversation, indexing(row))
    key = person.pk
    person.delete()
    assert not WebResult.objects.filter(person_id=key).exists()
    assert not Keyword.objects.filter(person_id=key).exists()
