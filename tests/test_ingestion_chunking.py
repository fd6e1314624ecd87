"""How a text is cut: nothing lost, nothing torn, the same every time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrieval.ingestion.chunking import LEAST, MOST, Span, chunk
from retrieval.ingestion.content import Content
from retrieval.ingestion.formats.delimited import read_delimited
from retrieval.ingestion.formats.html import read_html
from retrieval.ingestion.formats.markdown import read_markdown
from retrieval.ingestion.formats.plain import read_lines, read_plain
from retrieval.ingestion.graphemes import is_boundary
from retrieval.windows import OVERLAP, WORDS, windows_of
from tests.documents import prose

READERS = [read_plain, read_markdown, read_lines, read_html, read_delimited]
WHITE = st.sampled_from(["\n", "\n\n", " ", "\r\n", "\t", "\u2028", "\x0b", "\x85", "\xa0"])
MARKS = st.sampled_from(
    ["# Title\n", "## Sub\n", "```\n", "~~~\n", "| a | b |\n|---|---|\n", "Under\n=====\n", ". ", "。", '"', ","]
)
ODD = st.sampled_from(
    ["👩‍👩‍👧", "🇩🇪🇫🇷", "e\u0301\u0323", "각", "\u1100\u1161", "👍🏽", "\u0e33", "x" * 700, "漢" * 900, "\0"]
)
TAGS = st.sampled_from(["<p>", "</p>", "<h1>", "<table><tr><td>", "</table>", "<pre>", "<script>", "&amp;", "<"])
TEXTS = st.lists(st.one_of(st.text(max_size=30), WHITE, MARKS, ODD, TAGS, st.just(prose(60) + " ")), max_size=40).map(
    "".join
)


def visible(text: str) -> list[int]:
    return [place for place, character in enumerate(text) if not character.isspace()]


def spans_of(content: Content) -> list[Span]:
    return list(chunk(content))


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=25, deadline=None)
@given(text=TEXTS)
@example(text=" \u0301" * 2_000)
@example(text="a\u0301" * 3_000)
@example(text="🇩🇪" * 2_000)
@example(text="```\n" * 7)
def test_every_visible_character_is_in_exactly_one_passage(reader: object, text: str) -> None:
    content: Content = reader(text)  # type: ignore[operator]
    covered = [place for span in spans_of(content) for place in range(span.start, span.end)]
    assert covered == sorted(set(covered))
    assert set(visible(content.text)) <= set(covered)


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=25, deadline=None)
@given(text=TEXTS)
@example(text="👩‍👩‍👧" * 900)
@example(text=("x" * 1_599 + "e\u0301") * 3)
def test_no_cut_goes_through_a_character_as_people_see_it(reader: object, text: str) -> None:
    content: Content = reader(text)  # type: ignore[operator]
    for before, after in pairwise(spans_of(content)):
        assert before.end <= after.start
        if before.end == after.start:
            assert is_boundary(content.text, after.start)


@settings(max_examples=25, deadline=None)
@given(text=TEXTS)
def test_the_same_text_is_always_cut_the_same(text: str) -> None:
    assert spans_of(read_markdown(text)) == spans_of(read_markdown(text))


@settings(max_examples=25, deadline=None)
@given(text=TEXTS)
def test_a_passage_stays_near_its_size(text: str) -> None:
    for span in spans_of(read_markdown(text)):
        assert len(read_markdown(text).text[span.start : span.end].split()) <= MOST + LEAST


def test_prose_is_cut_between_sentences_into_passages_of_about_300_words() -> None:
    content = read_plain(prose(3_000))
    texts = [content.text[span.start : span.end] for span in spans_of(content)]
    assert all(text.startswith("Sentence") and text.endswith("today.") for text in texts)
    assert all(290 <= len(text.split()) <= 330 for text in texts)


def test_a_table_that_fits_is_never_parted() -> None:
    table = "| name | plan |\n|---|---|\n" + "".join(f"| Person {number} | Free |\n" for number in range(35))
    content = read_markdown(f"# People\n\n{prose(200)}\n\n{table}\n{prose(200)}")
    whole = [span for span in spans_of(content) if "| Person 0 |" in content.text[span.start : span.end]]
    assert "| Person 34 |" in content.text[whole[0].start : whole[0].end]


def test_short_sections_stand_together_and_long_ones_apart() -> None:
    text = "".join(f"# Part {number}\n\n{prose(20)}\n\n" for number in range(3)) + f"# Long\n\n{prose(300)}\n"
    assert [span.section for span in spans_of(read_markdown(text))] == ["Part 0", "Long"]


@pytest.mark.parametrize("text", ["# A\n\n#### Deep\n\n## B\n\n" + prose(80), "# A\n\n## B ##\n\n" + prose(80)])
def test_a_heading_stands_under_the_ones_above_it(text: str) -> None:
    assert [span.section for span in spans_of(read_markdown(text))] == ["A › B"]


def test_one_endless_line_is_cut() -> None:
    content = read_plain("word " * 100_000)
    assert len(spans_of(content)) == pytest.approx(100_000 / 300, rel=0.1)


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=400) | TEXTS)
def test_windows_hold_the_whole_text(text: str) -> None:
    windows = windows_of(text)
    assert bool(windows) == bool(text)
    joined = " ".join(windows)
    assert all(word[:40] in joined for word in text.split())


def test_windows_are_of_one_length_and_overlap_a_little() -> None:
    for words in (100, 200, 300, 400):
        windows = [window.split() for window in windows_of(" ".join(f"w{number}" for number in range(words)))]
        assert all(abs(len(window) - WORDS) <= WORDS / 3 for window in windows)
        assert max(map(len, windows)) - min(map(len, windows)) <= 2
        assert all(OVERLAP <= len(set(before) & set(after)) <= OVERLAP + 2 for before, after in pairwise(windows))
