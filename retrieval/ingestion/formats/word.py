"""DOCX: paragraphs, headings by their style, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from retrieval.errors import UnreadableFile
from retrieval.ingestion.archives import open_archive, refuse_entities
from retrieval.ingestion.content import Content, Writer

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_HEADING_STYLE = re.compile(r"(?i)heading ([1-9])")
_DEEPEST_STYLE = 10
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def read_word(file: BinaryIO) -> Content:
    """Raises UnreadableFile."""
    with open_archive(file) as archive:
        refuse_entities(archive)
    import docx
    from docx.table import Table

    file.seek(0)
    try:
        document = docx.Document(file)
        writer, levels = Writer(), dict[str, int]()
        for item in document.iter_inner_content():
            if isinstance(item, Table):
                _write_table(writer, item)
            else:
                _write_paragraph(writer, item, levels)
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableFile("The Word document is damaged. Save it again and upload it anew.") from error
    return writer.content(MEDIA_TYPE)


def _write_paragraph(writer: Writer, paragraph: Any, levels: dict[str, int]) -> None:
    text = paragraph.text.strip()
    if not text:
        return
    if level := _level(paragraph, levels):
        writer.heading(" ".join(text.split()), level)
    elif _is_listed(paragraph):
        writer.paragraph(f"- {text}")
    else:
        writer.paragraph(text)


def _write_table(writer: Writer, table: Any) -> None:
    lines = [" | ".join(cells) for row in table._tbl.tr_lst if any(cells := list(_cells(row)))]
    if lines:
        writer.block("\n".join(lines))


def _cells(row: Any) -> Iterator[str]:
    """By the XML, since python-docx looks at the whole table for every cell."""
    for cell in row.tc_lst:
        paragraphs = ("".join(_words(paragraph)) for paragraph in cell.iter(f"{_WORD}p"))
        yield " ".join(" ".join(paragraphs).split())


def _words(paragraph: Any) -> Iterator[str]:
    for element in paragraph.iter(f"{_WORD}t", f"{_WORD}tab", f"{_WORD}br"):
        yield (element.text or "") if element.tag == f"{_WORD}t" else " "


def _is_listed(paragraph: Any) -> bool:
    properties = paragraph._p.pPr
    return (properties is not None and properties.numPr is not None) or _style_id(paragraph).startswith("List")


def _style_id(paragraph: Any) -> str:
    return str(paragraph._p.style or "")


def _level(paragraph: Any, levels: dict[str, int]) -> int:
    """1 and down for a heading, 0 for none; asked once a style."""
    name = _style_id(paragraph)
    if name not in levels:
        levels[name] = _level_of_style(paragraph.style)
    return levels[name]


def _level_of_style(style: Any) -> int:
    for _ in range(_DEEPEST_STYLE):
        if style is None:
            return 0
        name = str(style.name or "")
        if name.lower() == "title":
            return 1
        if match := _HEADING_STYLE.fullmatch(name):
            return int(match[1])
        outline = style.element.find(f"{_WORD}pPr/{_WORD}outlineLvl")
        if outline is not None and outline.get(f"{_WORD}val", "").isdigit():
            level = int(outline.get(f"{_WORD}val")) + 1
            return level if level <= 9 else 0
        style = style.base_style
    return 0
