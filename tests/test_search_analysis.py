"""Which terms a text is found by."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.analysis import LONGEST_TERM, MOST_TERMS, terms


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("max_tokens", "maxTokens"),
        ("max-tokens", "MAX_TOKENS"),
        ("e-mail", "Emails"),
        ("gpt4", "GPT-4"),
        ("create_task", "asyncio.create_task()"),
        ("settings.py", "klerai/settings.py:17"),
        ("docs.example.org", "https://docs.example.org/en/start"),
        ("user name", "getUserName"),
        ("http server", "HTTPServer"),
        ("sha 256", "SHA256"),
        ("running", "it runs"),
        ("Claude’s embeddings", "claude embedding"),
        ("cafe uber", "Café ÜBER"),
        ("strasse", "Straße"),
        ("ＡＢＣ ２０２４", "abc 2024"),
        ("1,234,567", "1234567"),
        ("3.5", "version 3.5."),
        ("C++", "c++"),
        ("c#", "C#."),
        ("京都", "東京都庁"),
        ("검색", "검색은"),
        ("खोज", "हिन्दी में खोज"),
        ("ภาษา", "ภาษาไทย"),
    ],
)
def test_what_means_the_same_name_is_found(asked: str, written: str) -> None:
    assert set(terms(asked)) & set(terms(written))


@pytest.mark.parametrize(("one", "other"), [("3.5", "35"), ("C++", "C#"), ("127.0.0.1", "127.0.0.2"), ("京都", "東京")])
def test_what_only_looks_alike_is_told_apart(one: str, other: str) -> None:
    assert not set(terms(one)) & set(terms(other))


def test_an_identifier_is_indexed_whole_and_split_at_every_joint() -> None:
    assert terms("chat.tools/getUserName_v2") == [
        *("chattoolsgetusernamev2", "chattool", "getusernamev2", "chat", "tool", "getusernam", "v2", "get", "user"),
        *("name", "2"),
    ]


def test_words_that_say_nothing_are_dropped_unless_there_are_no_others() -> None:
    assert terms("What is the price of it?") == terms("price")
    assert terms("To be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert terms("don't") == ["dont"]


@pytest.mark.parametrize("text", ["", " \n", "😀🎉", "…—!?", "\0\0", "\ud800", "____", "----"])
def test_text_without_words_has_no_terms(text: str) -> None:
    assert terms(text) == []


@given(st.text(max_size=300))
def test_any_text_gives_short_terms_that_a_database_can_keep(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= LONGEST_TERM + 1
        assert "\0" not in term.encode().decode()


@pytest.mark.parametrize(
    "unit",
    ["a", "a.", "aB", "_", "-", "漢", "1,000", "a'", "a\u0301\u0323", "\u0591\u05b0", "\u0e38\u0e48", "ﷺ", "a/b.c_d-"],
)
def test_hostile_text_costs_no_more_than_a_moment(unit: str) -> None:
    begun = time.process_time()
    assert len(terms(unit * (400_000 // len(unit)))) <= MOST_TERMS
    assert time.process_time() - begun < 2
