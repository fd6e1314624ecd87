"""HTML: what a reader of the page sees, with its headings, tables and preformatted parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from retrieval.ingestion.content import Content, Writer

_UNSEEN = frozenset(
    {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select", "textarea"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKING = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt"}
    | {"fieldset", "figcaption", "figure", "footer", "form", "head", "header", "hr", "html", "legend", "li", "main"}
    | {"menu", "nav", "ol", "p", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"}
)
_NEWLINES = re.compile(r"[\r\n]+")  # outside of pre only <br> breaks a line
_CELLS = frozenset({"td", "th"})


def read_html(text: str) -> Content:
    page = _Page()
    page.feed(text)
    page.close()
    return page.finished()


@dataclass(slots=True)
class _Table:
    """The outermost table; what stands in inner ones is words of its cells."""

    depth: int = 1
    rows: list[list[str]] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join(" | ".join(cells) for cells in self.rows if any(cells))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._writer = Writer()
        self._words: list[str] = []
        self._unseen: list[str] = []
        self._heading: int | None = None
        self._pre = 0
        self._table: _Table | None = None

    def finished(self) -> Content:
        self._flush()
        if self._table:
            self._end_table()
        return self._writer.content("text/html")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unseen or tag in _UNSEEN:
            if tag in _UNSEEN:
                self._unseen.append(tag)
        elif self._table:
            self._start_in_table(tag)
        elif tag == "br":
            self._words.append("\n")
        elif tag == "table":
            self._flush()
            self._table = _Table()
        elif tag in _HEADINGS or tag == "title":
            self._flush()
            self._heading = _HEADINGS.get(tag, 1)
        elif tag == "pre":
            self._flush()
            self._pre += 1
        elif tag in _BREAKING:
            self._flush()
            if tag == "li":
                self._words.append("- ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _UNSEEN:  # which, in HTML, nothing closes in its own tag but foreign content
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
        elif self._table:
            self._end_in_table(tag)
        elif tag in _HEADINGS or tag == "title":
            self._flush()
        elif tag == "pre":
            self._flush()
            self._pre = max(self._pre - 1, 0)
        elif tag in _BREAKING:
            self._flush()

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._words.append(data if self._pre else _NEWLINES.sub(" ", data))

    def _start_in_table(self, tag: str) -> None:
        assert self._table is not None
        if tag == "table":
            self._table.depth += 1
        elif self._table.depth == 1 and tag == "tr":
            self._end_cell()
            self._table.rows.append([])
        elif self._table.depth == 1 and tag in _CELLS:
            self._end_cell()
            if not self._table.rows:
                self._table.rows.append([])
        elif tag in _BREAKING or tag == "br":
            self._words.append(" ")

    def _end_in_table(self, tag: str) -> None:
        assert self._table is not None
        if tag == "table":
            self._table.depth -= 1
            if not self._table.depth:
                self._end_table()
        elif self._table.depth == 1 and tag in _CELLS:
            self._end_cell(is_closed=True)
        elif tag in _BREAKING:
            self._words.append(" ")

    def _end_cell(self, *, is_closed: bool = False) -> None:
        assert self._table is not None
        words = " ".join("".join(self._words).split())
        self._words.clear()
        if words or is_closed:
            if not self._table.rows:
                self._table.rows.append([])
            self._table.rows[-1].append(words)

    def _end_table(self) -> None:
        self._end_cell()
        assert self._table is not None
        text, self._table = self._table.text(), None
        if text:
            self._writer.block(text)

    def _flush(self) -> None:
        written, level = "".join(self._words), self._heading
        self._words.clear()
        self._heading = None
        if self._pre:
            if written.strip():
                self._writer.block(written.strip("\n"))
            return
        text = "\n".join(filter(None, (" ".join(line.split()) for line in written.split("\n"))))
        if not text or text == "-":
            return
        if level is None:
            self._writer.paragraph(text)
        else:
            self._writer.heading(" ".join(text.split()), level)
