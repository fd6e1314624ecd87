"""CSV and its kin: every row becomes a line that names its columns, so that a row is understood where it stands."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from retrieval.errors import UnreadableFile
from retrieval.ingestion.content import Content, Writer

DELIMITERS = ",;\t|"
BETWEEN_CELLS = " | "
MOST_COLUMNS = 2_000
_LOOKED_AT = 20  # rows
_SAMPLE = 65_536  # characters
_LONGEST_CELL = 200_000_000
_NUMBER = re.compile(r"[-+]?[\d.,\s%$€£]*\d[\d.,\s%$€£]*")


def read_delimited(text: str, media_type: str = "text/csv") -> Content:
    """Empty cells and rows are left out. Raises UnreadableFile."""
    writer, starts = Writer(), list[int]()
    header, rows = table_of(text)
    try:
        for row in rows:
            line = BETWEEN_CELLS.join(_named(header, row))
            if line:
                starts.append(writer.line(line))
    except csv.Error as error:
        raise UnreadableFile(f"The table cannot be read: {error}.") from error
    if not starts and any(header):
        starts.append(writer.line(BETWEEN_CELLS.join(header)))
    return writer.content(media_type, rows=tuple(starts))


def table_of(text: str) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the columns and the rows under them. Raises UnreadableFile."""
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text))
    try:
        first = next(rows, [])
    except csv.Error as error:
        raise UnreadableFile(f"The table cannot be read: {error}.") from error
    if len(first) > MOST_COLUMNS:
        raise UnreadableFile(f"The table has more than {MOST_COLUMNS:,} columns. Split it, or turn it around.")
    names = [name.strip() for name in first]
    if _names_columns(names):
        return names, rows
    return [f"column {number}" for number in range(1, len(first) + 1)], _with_first(first, rows)


def delimiter_of(text: str) -> str:
    """The character that cuts the first rows into the most columns, the same number in most rows."""
    best = {delimiter: _regularity(text, delimiter) for delimiter in DELIMITERS}
    return max(DELIMITERS, key=lambda delimiter: best[delimiter])


def is_table(text: str) -> bool:
    """Whether the beginning of a text is rows of as many columns each: two at least, and three between commas, since
    one comma a line is what verses and addresses have too.
    """
    delimiter = delimiter_of(text)
    widths = _widths(text, delimiter)
    least = 3 if delimiter == "," else 2
    return len(widths) >= 3 and min(widths) == max(widths) >= least and "\n" not in text.strip()[:1]


def _regularity(text: str, delimiter: str) -> tuple[float, int]:
    widths = _widths(text, delimiter)
    if not widths:
        return 0.0, 0
    width, rows = Counter(widths).most_common(1)[0]
    return (rows / len(widths) if width > 1 else 0.0), width


def _widths(text: str, delimiter: str) -> list[int]:
    sample = text[:_SAMPLE]
    csv.field_size_limit(_LONGEST_CELL)
    try:
        rows = list(islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), _LOOKED_AT + 1))
    except csv.Error:
        return []
    is_cut_off = len(text) > len(sample) and len(rows) <= _LOOKED_AT
    return [len(row) for row in (rows[:-1] if is_cut_off and len(rows) > 1 else rows) if row]


def _names_columns(names: list[str]) -> bool:
    return any(names) and not any(_NUMBER.fullmatch(name) for name in names if name) and _are_distinct(names)


def _are_distinct(names: list[str]) -> bool:
    given = [name for name in names if name]
    return len(set(given)) == len(given)


def _with_first(first: list[str], rows: Iterator[list[str]]) -> Iterator[list[str]]:
    if first:
        yield first
    yield from rows


def _named(header: list[str], row: list[str]) -> Iterator[str]:
    for place, cell in enumerate(row):
        name = header[place] if place < len(header) and header[place] else f"column {place + 1}"
        if cell.strip():
            yield f"{name}: {cell}"
