"""What becomes of a file of each kind: its text, and passages that say where they stand."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from klerai.accounts.models import Person
from retrieval.ingestion.formats.delimited import table_of
from retrieval.models import Document
from tests.documents import chunks_of, pdf_file, prose, sections_of, taken_in, word_file, zip_file
from tests.people import make_alice

GUIDE = f"""# Guide

Welcome to the guide.

## Credits

{prose(250)}

### Daily

{prose(100, "days")}

```python
# not a heading

## neither is this
print("kept whole")
```

Setext
------

| plan | credits |
|------|---------|
| Free | 50      |
| Pro  | 3,000   |
"""


@pytest.fixture(scope="module")
def alice(database: object) -> Person:
    return make_alice()


def ready(person: Person, name: str, data: bytes | str) -> Document:
    document = taken_in(person, name, data)
    assert (document.status, document.error, document.progress) == ("ready", "", 100)
    for chunk in chunks_of(document):
        assert document.text[chunk.start : chunk.end] == chunk.text
    return document


def test_markdown_keeps_its_text_and_is_cut_along_its_headings(alice: Person) -> None:
    document = ready(alice, "guide.md", GUIDE)
    assert (document.text, document.media_type) == (GUIDE, "text/markdown")
    assert sections_of(document) == ["Guide › Credits", "Guide › Credits › Daily", "Guide › Setext"]
    assert '## neither is this\nprint("kept whole")\n```' in chunks_of(document)[1].text
    assert "| Free | 50      |\n| Pro  | 3,000   |" in chunks_of(document)[2].text


def test_a_word_file_gives_headings_lists_and_tables(alice: Person) -> None:
    data = word_file(headings=["Rates", "Refunds"], rows=[["plan", "credits"], ["Free", "50"]])
    document = ready(alice, "handbook.docx", data)
    assert sections_of(document) == ["Handbook › Rates", "Handbook › Refunds"]
    assert "- First point" in document.text
    assert "plan | credits\nFree | 50" in chunks_of(document)[1].text


def test_a_pdf_gives_pages_and_its_outline(alice: Person) -> None:
    pages = ["Opening\n" + prose(80, "first"), "Closing\n" + prose(80, "(second)"), prose(200, "third")]
    document = ready(alice, "report.pdf", pdf_file(pages, outline=[("Opening", 0), ("Closing", 1)]))
    assert [chunk.page for chunk in chunks_of(document)] == [1, 2]
    assert sections_of(document) == ["Opening", "Closing"]
    assert "about (second) again" in chunks_of(document)[1].text


def test_html_gives_what_a_reader_sees(alice: Person) -> None:
    page = f"""<!doctype html><html><head><title>Plans</title><style>p {{ color: red }}</style></head><body>
    <script>alert("never")</script><h1>Our plans</h1><p>{prose(80)}<br>Second&nbsp;line &amp; more.</p>
    <h2>Free</h2><ul><li>one</li><li>two</ul><table><tr><th>plan<th>price<tr><td>Free<td>0<td></table>
    <pre>  kept
    as is</pre><noscript>never</noscript></body></html>"""
    document = ready(alice, "plans.html", page)
    assert (document.media_type, sections_of(document)) == ("text/html", ["Our plans", "Our plans › Free"])
    assert "today.\nSecond line & more." in document.text
    assert "- one\n\n- two\n\nplan | price\nFree | 0" in document.text
    assert "  kept\n    as is" in document.text
    assert not {"never", "color"} & set(document.text.replace('"', " ").split())


def test_verses_with_a_comma_in_each_line_are_no_table(alice: Person) -> None:
    verses = "Old pond, quiet\nA frog leaps, once\nThe water, sounds\nThe pond, again\n"
    assert ready(alice, "verses.txt", verses).text == verses


def test_csv_gives_rows_that_name_their_columns(alice: Person) -> None:
    rows = [f"{number};Person {number};{'x' if number % 2 else ''}" for number in range(1, 200)]
    document = ready(alice, "people.csv", "id;name;flag\n" + "\n".join(rows))
    assert document.text.startswith("id: 1 | name: Person 1 | flag: x\nid: 2 | name: Person 2\n")
    assert chunks_of(document)[1].text.startswith("id: ")
    assert sections_of(document)[0].startswith("Rows 1–")
    assert sections_of(document)[-1].endswith("–199")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('first,city,zip\nJohn,"Anytown, WW",08123', [{"first": "John", "city": "Anytown, WW", "zip": "08123"}]),
        ('a,b,c\r\n1,"",""\r\n2,3,4', [{"a": "1", "b": "", "c": ""}, {"a": "2", "b": "3", "c": "4"}]),
        ('a,b\n1,"ha ""ha"" ha"\n3,4\n', [{"a": "1", "b": 'ha "ha" ha'}, {"a": "3", "b": "4"}]),
        (
            'key,val\n1,"{""type"": ""Point"", ""at"": [102.0, 0.5]}"\n',
            [{"key": "1", "val": '{"type": "Point", "at": [102.0, 0.5]}'}],
        ),
        ('a,b\n1,2\n"Once upon \r\na time",5\n', [{"a": "1", "b": "2"}, {"a": "Once upon \r\na time", "b": "5"}]),
        ('a,b\n1,"ha \n""ha"" \nha"\n3,4\n', [{"a": "1", "b": 'ha \n"ha" \nha'}, {"a": "3", "b": "4"}]),
        ("a\tb\n1,5\tʤ", [{"a": "1,5", "b": "ʤ"}]),
        ("1,2\n3,4", [{"column 1": "1", "column 2": "2"}, {"column 1": "3", "column 2": "4"}]),
    ],
)
def test_tables_are_parsed_as_written(text: str, expected: list[dict[str, str]]) -> None:
    header, rows = table_of(text)
    assert [dict(zip(header, row, strict=True)) for row in rows] == expected


def test_lines_of_json_are_rows(alice: Person) -> None:
    lines = "\n".join(json.dumps({"id": number, "text": prose(50)}) for number in range(10))
    document = ready(alice, "rows.jsonl", lines)
    assert document.text == lines
    assert sections_of(document) == ["Rows 1–6", "Rows 7–10"]


def test_json_and_plain_text_stay_as_they_are(alice: Person) -> None:
    for name, text in (("data.json", '{"a": [1, 2.50], "b": "\\u00e4"}'), ("note.txt", "One.\r\n\r\nTwo.\r\n")):
        assert ready(alice, name, text).text == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_text_comes_in_many_encodings(alice: Person, encoding: str) -> None:
    words = "Grüße aus Köln, 100 €"
    assert ready(alice, f"{encoding}.txt", words.encode(encoding)).text == words


def test_one_damaged_byte_does_not_spoil_the_others(alice: Person) -> None:
    assert "größer" in ready(alice, "long.txt", ("größer " * 500).encode() + b"\xff end").text


def test_the_content_decides_what_a_file_is(alice: Person) -> None:
    name = "letter.csv"
    assert ready(alice, name, pdf_file([prose(30)])).media_type == "application/pdf"
    assert ready(alice, name, word_file()).media_type.endswith("wordprocessingml.document")
    assert ready(alice, name, f"<!DOCTYPE html><h1>Plans</h1>{prose(20)}").media_type == "text/html"


UNREADABLE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty.txt": (lambda: b"", "The file is empty."),
    "blank.txt": (lambda: b" \n\t ", "There is no text in the file."),
    "picture.pdf": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "looks like PNG"),
    "noise.txt": (lambda: bytes(range(256)) * 20, "not text"),
    "old.doc": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "Save it as DOCX"),
    "book.xlsx": (lambda: zip_file({"xl/workbook.xml": b"<a/>"}), "as CSV"),
    "files.zip": (lambda: zip_file({"a.txt": b"a"}), "Unpack it"),
    "scan.pdf": (lambda: pdf_file([""]), "only pictures of pages"),
    "locked.pdf": (lambda: pdf_file([prose(30)], password="secret"), "protected by a password"),
    "torn.pdf": (lambda: pdf_file([prose(30)])[:300], "damaged"),
    "torn.docx": (lambda: word_file()[:2000], "damaged"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_fails_with_a_reason_and_leaves_nothing(alice: Person, name: str) -> None:
    made, reason = UNREADABLE[name]
    document = taken_in(alice, name, made())
    assert document.status == "failed"
    assert reason in document.error
    assert document.error.endswith(".")
    assert (document.text, chunks_of(document)) == ("", [])


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪", "Ṱ̺̺̕o͞ ̷i̲̬͇̪͙n̝̗͕v̟̜̘̦͟o̶̙̰̠kè͚̮̺̪̹̱̤", "<script>alert(0)</script>", "田中さん", "؟ مُنَاقَشَةُ", "\ufefftest", "1;DROP TABLE"],
)
def test_odd_text_comes_back_as_it_was(alice: Person, text: str) -> None:
    document = ready(alice, "odd.txt", "Before.\n\n" + text + "\n")
    assert text in document.text
    assert text in chunks_of(document)[0].text


def test_nul_is_replaced_since_no_database_keeps_it(alice: Person) -> None:
    assert ready(alice, "nul.txt", "a" * 100 + "\0b").text == "a" * 100 + "\N{REPLACEMENT CHARACTER}b"
