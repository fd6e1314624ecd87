"""A JSON object that is still being written: however it is cut, its values and its growing string are the same."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.partial_json import Growth, PartialObject, Whole

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\t\b😀é\u2028'), max_size=40)


def read(written: str, *, cuts: list[int]) -> tuple[dict[str, Any], str]:
    """The values that became whole and the string that grew, when the text arrives in these pieces."""
    reader = PartialObject(grows="answer")
    values: dict[str, Any] = {}
    grown = ""
    ends = [0, *sorted(cut % (len(written) + 1) for cut in cuts), len(written)]
    for start, end in pairwise(ends):
        for found in reader.feed(written[start:end]):
            match found:
                case Whole(name, value):
                    values[name] = value
                case Growth(text):
                    grown += text
    return values, grown


def every_cut(written: str) -> list[int]:
    return list(range(len(written) + 1))


@given(
    others=st.dictionaries(st.text(max_size=6).filter(lambda name: name != "answer"), VALUES, max_size=3),
    answer=TEXT,
    is_first=st.booleans(),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_cut_at_every_character_it_is_read_as_json_reads_it(
    others: dict[str, Any], answer: str, is_first: bool, is_ascii: bool, indent: int | None
) -> None:
    whole = {"answer": answer, **others} if is_first else {**others, "answer": answer}
    written = json.dumps(whole, ensure_ascii=is_ascii, indent=indent)
    assert read(written, cuts=every_cut(written)) == (others, answer)
    assert read(written, cuts=[]) == (others, answer)


@given(written=st.text(alphabet='{}[]",:\\ud8 answer01e-', max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_what_is_no_json_is_read_the_same_however_it_is_cut(written: str, cuts: list[int]) -> None:
    assert read(written, cuts=cuts) == read(written, cuts=every_cut(written))


@pytest.mark.parametrize(
    ("written", "values", "grown"),
    [
        ('{"sources": [1, 2], "answer": "Half a wor', {"sources": [1, 2]}, "Half a wor"),
        ('{"sources": [1, "a ] b"], "n": 5, "answer": "x\\u00e', {"sources": [1, "a ] b"], "n": 5}, "x"),
        ('{"answer": "\\ud83d\\ude00!"}', {}, "😀!"),
        ('{"answer": "so \\ud83d alone"}', {}, "so "),
        ('{"answer": "so \\ude00"}', {}, "so "),
        ('{"answer": "a\nb"}', {}, "a"),
        ('{"answer": "a\\qb"}', {}, "a"),
        ('{"answer": "a", "answer": "b"}', {}, "a"),
        ('{"answer": 5}', {"answer": 5}, ""),
        ('{"n": 5', {}, ""),
        ('{"n": truth, "answer": "a"}', {}, ""),
        ('["answer"]', {}, ""),
        ("{}", {}, ""),
        ('{"answer": "a"} and more', {}, "a"),
    ],
)
def test_what_is_certain_is_given_and_what_is_wrong_ends_the_reading(
    written: str, values: dict[str, Any], grown: str
) -> None:
    assert read(written, cuts=every_cut(written)) == (values, grown)
    assert read(written, cuts=[]) == (values, grown)
