"""T7: whoever asks the web owes keywords: asked for once more, then found by the product; no answer is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from chat.wiring import Runtime
from retrieval.keyword_extraction import extracted
from retrieval.models import KeywordLink, WebResult
from retrieval.web_results import found_by_keywords
from tests.fakes.anthropic import AnthropicFake
from tests.fakes.anthropic_script import Call, calls, says
from tests.fakes.outside import Step, running
from tests.fakes.perplexity_server import DJANGO, PerplexityFake
from tests.fakes.web import KEY
from tests.harness.doors import Visitor, by_key
from tests.harness.soundness import nothing_breaks
from tests.serving import served, vendor_settings
from tests.test_citations import handbook, sent
from tests.test_grounded import SEARCH, ended, respond

WEB = Call("perplexity_search", {"query": "What is new in Django 5.2?", "context": "The handbook says nothing."})
KEYWORDS = ["Django 5.2", "composite primary keys", "Django releases"]
INDEX = Call("index_keywords", {"keywords": KEYWORDS, "query_id": "q1", "perplexity_result_id": "q1-t2"})
QUESTION = "What is new in Django?"


@pytest.fixture(scope="module")
def perplexity() -> Iterator[PerplexityFake]:
    with running(PerplexityFake(says=[DJANGO])) as fake:
        yield fake


@pytest.fixture(scope="module")
def online(database: object, anthropic_server: AnthropicFake, perplexity: PerplexityFake) -> Iterator[str]:
    keyed = {"PERPLEXITY_API_KEY": KEY, "PERPLEXITY_BASE_URL": perplexity.url}
    with override_settings(**vendor_settings(anthropic_server.url), **keyed), served(start=Runtime.start) as url:
        yield url


@pytest.fixture
def alice(online: str) -> Iterator[Visitor]:
    with nothing_breaks(), by_key(online) as visitor:
        handbook(visitor.person)
        yield visitor


def keywords_of(alice: Visitor) -> list[str]:
    links = KeywordLink.objects.filter(keyword__person=alice.person)
    return sorted(links.values_list("keyword__text", flat=True))


def test_keywords_that_were_stored_let_the_answer_through(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(SEARCH), calls(WEB), calls(INDEX), calls(respond("Keys [3].", [3])))
    end = ended(alice.events(QUESTION, mode="grounded"))
    assert (end["text"], end["receipt"]["credits"]) == ("Keys [1].", 5 + 2 + 2)
    assert [cited["origin"] for cited in end["citations"]] == ["web"]
    assert keywords_of(alice) == sorted(KEYWORDS)


def test_an_answer_that_owes_keywords_goes_back_once_unseen(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    early = calls(respond("Too early.", [3]))
    anthropic_fake.script(calls(SEARCH), calls(WEB), early, calls(INDEX), calls(respond("Keys [3].", [3])))
    frames = alice.events(QUESTION, mode="grounded")
    assert ended(frames)["text"] == "Keys [1]."
    assert "Too early" not in repr(frames)
    assert "Call index_keywords first" in sent(anthropic_fake)[3]
    assert keywords_of(alice) == sorted(KEYWORDS)


def test_keywords_that_never_come_are_found_by_the_product(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(
        calls(SEARCH), calls(WEB), calls(respond("Early [3].", [3])), calls(respond("Keys [3].", [3]))
    )
    answer = alice.answer(QUESTION, mode="grounded")
    assert (answer["response"], answer["receipt"]["turns"]) == ("Keys [1].", 4)
    assert "Django 5.2" in keywords_of(alice)
    assert [one.query for one in found_by_keywords(alice.person, "Does Django 5.2 bring it?")] == [
        "What is new in Django 5.2?"
    ]


def test_a_mode_that_closes_with_words_makes_no_turn_of_it(alice: Visitor, anthropic_fake: AnthropicFake) -> None:
    anthropic_fake.script(calls(WEB), says("Keys [1]."))
    answer = alice.answer(QUESTION)
    assert (answer["response"], answer["receipt"]["turns"]) == ("Keys [1].", 2)
    assert "Django 5.2" in keywords_of(alice)


def test_nothing_is_owed_for_a_search_that_failed_or_leaves_nothing(
    alice: Visitor, anthropic_fake: AnthropicFake, perplexity: PerplexityFake
) -> None:
    anthropic_fake.script(calls(SEARCH), calls(WEB), calls(respond("Nothing of it.", [])))
    perplexity.steps[:] = [Step(503)] * 2
    assert ended(alice.events(QUESTION, mode="grounded"))["text"] == "Nothing of it."
    anthropic_fake.script(calls(SEARCH), calls(WEB), calls(respond("Keys [3].", [3])))
    assert alice.answer(QUESTION, mode="grounded", temporary=True)["response"] == "Keys [1]."
    assert not WebResult.objects.filter(person=alice.person).exists()


@pytest.mark.parametrize(
    ("query", "titles", "text", "first"),
    [
        ("Who won the chess world championship 2026?", [], "Gukesh beat Sindarov.", "chess world championship 2026"),
        ("AAPL price today", ["Apple shares"], "Apple closed at 231.40.", "AAPL price today"),
    ],
)
def test_own_keywords_are_what_the_question_speaks_of(query: str, titles: list[str], text: str, first: str) -> None:
    found = extracted(query, titles, text)
    assert found[0] == first
    assert 3 <= len(found) <= 10


@pytest.mark.parametrize("text", ["", "the of and", "!!!", "1 2 3"])
def test_where_there_is_nothing_to_name_nothing_is_indexed(text: str) -> None:
    assert extracted(text, [], text) == []
