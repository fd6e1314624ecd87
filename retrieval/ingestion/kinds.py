"""What a file is, by its content; its name only decides between kinds of text that look alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import BinaryIO

from retrieval.errors import UnreadableFile
from retrieval.ingestion.archives import open_archive
from retrieval.ingestion.content import Content
from retrieval.ingestion.decoding import decoded, is_text
from retrieval.ingestion.formats.delimited import is_table, read_delimited
from retrieval.ingestion.formats.html import read_html
from retrieval.ingestion.formats.markdown import read_markdown
from retrieval.ingestion.formats.pdf import read_pdf
from retrieval.ingestion.formats.plain import read_lines, read_plain
from retrieval.ingestion.formats.word import read_word

MOST_TEXT = 20_000_000  # characters of a document
MOST_BYTES = 4 * MOST_TEXT
READABLE = "PDF, Word (DOCX), HTML, Markdown, text, CSV, JSON and JSON Lines"
TOO_MUCH_TEXT = f"The file holds more than {MOST_TEXT // 1_000_000} million characters of text. Split it."

_HEAD = 65_536
_HTML_STARTS = ("<!doctype html", "<html", "<head", "<body")
_LIKE_MARKDOWN = re.compile(r"(?m)^(?:#{1,6} \S|```|~~~)")
_SAVE_AS = {
    "xl/workbook.xml": "The file is an Excel workbook. Save the sheet you need as CSV and upload that.",
    "ppt/presentation.xml": "The file is a PowerPoint presentation. Save it as PDF and upload that.",
    "mimetype": "The file is an OpenDocument or e-book archive. Save it as DOCX or PDF and upload that.",
}
_BINARIES = {
    b"\xd0\xcf\x11\xe0": "The file is in an old Office format. Save it as DOCX (or a sheet as CSV) and upload that.",
    b"{\\rtf": "The file is rich text (RTF). Save it as DOCX and upload that.",
}


def read(file: BinaryIO, name: str) -> Content:
    """Raises UnreadableFile, and whatever a parser raises over a hostile file: for the confined child only."""
    head = file.read(_HEAD)
    file.seek(0)
    if not head:
        raise UnreadableFile("The file is empty.")
    if b"%PDF-" in head[:1024]:
        content = read_pdf(file)
    elif head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        content = _read_archive(file)
    elif problem := next((sentence for mark, sentence in _BINARIES.items() if head.startswith(mark)), None):
        raise UnreadableFile(problem)
    elif is_text(head):
        content = _read_text(file, name)
    else:
        raise UnreadableFile(f"{_what_it_is(head)} It can be read from {READABLE}.")
    if not content.text.strip():
        raise UnreadableFile("There is no text in the file.")
    if len(content.text) > MOST_TEXT:
        raise UnreadableFile(TOO_MUCH_TEXT)
    return content


def _read_archive(file: BinaryIO) -> Content:
    with open_archive(file) as archive:
        names = set(archive.namelist())
    if "word/document.xml" in names:
        return read_word(file)
    for mark, problem in _SAVE_AS.items():
        if mark in names:
            raise UnreadableFile(problem)
    raise UnreadableFile(f"The file is a ZIP archive. Unpack it and upload what is in it: {READABLE}.")


def _read_text(file: BinaryIO, name: str) -> Content:
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnreadableFile(TOO_MUCH_TEXT)
    is_page = data[:_HEAD].decode("latin-1").lstrip("\ufeffï»¿ \t\r\n").lower().startswith(_HTML_STARTS)
    text = decoded(data, declared=is_page or _ending(name) in {"html", "htm", "xhtml"})
    del data
    if len(text) > MOST_TEXT:
        raise UnreadableFile(TOO_MUCH_TEXT)
    return _reader(text, _ending(name))(text)


def _reader(text: str, ending: str) -> Callable[[str], Content]:
    """HTML and JSON Lines show what they are; a table or Markdown is believed by name, or where it is plain to see."""
    start = text[:1024].lstrip().lower()
    if start.startswith(_HTML_STARTS) or (start.startswith("<") and ending in {"html", "htm", "xhtml"}):
        return read_html
    if ending in {"jsonl", "ndjson"} or (start.startswith("{") and _are_lines_of_json(text)):
        return read_lines
    if ending == "json":
        return lambda text: read_plain(text, "application/json")
    if ending in {"csv", "tsv", "tab"}:
        return read_delimited
    if ending in {"md", "markdown", "mdown", "mdx"}:
        return read_markdown
    if ending in {"", "txt"} and _LIKE_MARKDOWN.search(text, 0, _HEAD):
        return read_markdown
    return read_delimited if ending in {"", "txt"} and is_table(text) else read_plain


def _are_lines_of_json(text: str) -> bool:
    lines = [line for line in text[:_HEAD].split("\n")[:6] if line.strip()]
    try:
        return len(lines) > 1 and all(isinstance(json.loads(line), dict) for line in lines[:5] if line != lines[-1])
    except (ValueError, RecursionError):
        return False


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _what_it_is(head: bytes) -> str:
    import puremagic

    try:
        found = puremagic.from_string(head[:8192])
    except (puremagic.PureError, ValueError):
        return "The file is not text."
    return f"The file looks like {found.lstrip('.').upper()}, which holds no text that can be read."
