"""The numbers of an answer: those of passages become 1, 2, 3 in order of first use, however the text is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.sources import Citing, Source, Sources, citations_of, without_numbers


def source(number: int) -> Source:
    return Source(f"Document {number}", f"Sentence {number}. Credits come back at midnight.", 0, 40, "internal")


def found(count: int) -> Sources:
    sources = Sources()
    sources.add(map(source, range(1, count + 1)))
    return sources


def rewritten(text: str, *, cuts: list[int], count: int = 7) -> tuple[str, list[str]]:
    """The text as it is shown when it arrives in these pieces, and the documents it cites."""
    sources = found(count)
    citing = Citing(sources)
    ends = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    shown = "".join(citing.feed(text[start:end]) for start, end in pairwise(ends))
    return shown + citing.rest(), [cited.title for cited in sources.cited]


@pytest.mark.parametrize(
    ("written", "shown", "cited"),
    [
        ("It is so [3]. And so [5][3].", "It is so [1]. And so [2][1].", [3, 5]),
        ("Both say so [2, 6].", "Both say so [1][2].", [2, 6]),
        ("Nobody said this [9].", "Nobody said this.", []),
        ("Half of it [9, 4].", "Half of it [1].", [4]),
        ("Take `row[1]` and [1](https://example.org).", "Take `row[1]` and [1](https://example.org).", []),
        ("```\nrow[2]\n```\nSo [2].", "```\nrow[2]\n```\nSo [1].", [2]),
        ("[x] [ 1 ] [1234] [", "[x] [ 1 ] [1234] [", []),
    ],
)
def test_numbers_are_given_in_order_of_first_use(written: str, shown: str, cited: list[int]) -> None:
    assert rewritten(written, cuts=[]) == (shown, [f"Document {number}" for number in cited])


@given(text=st.text(alphabet="ab [],()`\n123456789", max_size=60), cuts=st.lists(st.integers(0, 60), max_size=20))
def test_it_is_the_same_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    assert rewritten(text, cuts=cuts) == rewritten(text, cuts=[])


@given(text=st.text(max_size=80), cuts=st.lists(st.integers(0, 80), max_size=10))
def test_without_passages_no_character_changes(text: str, cuts: list[int]) -> None:
    assert rewritten(text, cuts=cuts, count=0) == (text, [])


def test_a_citation_quotes_the_sentence_that_stands_nearest_to_the_answers() -> None:
    (citation,) = citations_of("Your credits come back every midnight [1].", [source(4)])
    assert citation == {
        "n": 1,
        "title": "Document 4",
        "url": None,
        "document_id": None,
        "section": None,
        "quote": "Credits come back at midnight.",
        "start": 0,
        "end": 40,
        "origin": "internal",
    }


def test_a_number_that_is_not_in_the_text_is_no_citation() -> None:
    assert [each["n"] for each in citations_of("Only [2] is left.", [source(1), source(2)])] == [2]


def test_later_questions_are_sent_the_answer_without_its_numbers() -> None:
    text = "So it is [1]. In 2024 [a] too[2], see [7]."
    assert without_numbers(text, [{"n": 1}, {"n": 2}]) == "So it is. In 2024 [a] too, see [7]."
