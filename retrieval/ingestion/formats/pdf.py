"""PDF: the text of each page, and the outline as headings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, BinaryIO

from retrieval.errors import UnreadableFile
from retrieval.ingestion.content import Content, Heading, storable

MEDIA_TYPE = "application/pdf"
MOST_PAGES = 5_000
MOST_HEADINGS = 2_000
_DEEPEST = 6
_BETWEEN_PAGES = "\n\n"

NO_TEXT = "The PDF holds no text, only pictures of pages. Run it through text recognition (OCR) and upload the result."


def read_pdf(file: BinaryIO) -> Content:
    """Raises UnreadableFile."""
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableFile("The PDF is protected by a password. Save a copy without one and upload that.")
        if len(reader.pages) > MOST_PAGES:
            raise UnreadableFile(f"The PDF has more than {MOST_PAGES:,} pages. Split it.")
        texts = list(_page_texts(reader))
    except (UnreadableFile, MemoryError):
        raise
    except Exception as error:
        raise UnreadableFile("The PDF is damaged and cannot be read. Print it to a new PDF and upload that.") from error
    if not any(text.strip() for text in texts):
        raise UnreadableFile(NO_TEXT)
    pages = _starts(texts)
    text = _BETWEEN_PAGES.join(texts)
    return Content(text, MEDIA_TYPE, headings=_headings(reader, text, pages), pages=pages)


def _page_texts(reader: Any) -> Iterator[str]:
    """A page that alone is damaged is left empty; the rest is worth reading."""
    damaged: Exception | None = None
    has_read = False
    for page in reader.pages:
        try:
            yield storable(page.extract_text())
            has_read = True
        except MemoryError:
            raise
        except Exception as error:
            damaged = error
            yield ""
    if damaged is not None and not has_read:
        raise damaged


def _starts(texts: list[str]) -> tuple[int, ...]:
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(_BETWEEN_PAGES)
    return tuple(starts)


def _headings(reader: Any, text: str, pages: tuple[int, ...]) -> tuple[Heading, ...]:
    """The outline, each title where its words stand on its page, else at the page's beginning."""
    found: dict[int, Heading] = {}
    try:
        for level, title, page in _outline(reader, reader.outline, 1):
            if not 0 <= page < len(pages) or not title:
                continue
            first, last = pages[page], pages[page + 1] if page + 1 < len(pages) else len(text)
            at = text.find(title, first, last)
            start = at if at >= 0 else first
            found.setdefault(start, Heading(start, level, title))
            if len(found) >= MOST_HEADINGS:
                break
    except MemoryError:
        raise
    except Exception:  # an outline that is damaged is no reason to refuse the text
        return ()
    return tuple(found[start] for start in sorted(found))


def _outline(reader: Any, items: list[Any], level: int) -> Iterator[tuple[int, str, int]]:
    for item in items:
        if isinstance(item, list):
            if level < _DEEPEST:
                yield from _outline(reader, item, level + 1)
        else:
            page = reader.get_destination_page_number(item)
            yield level, " ".join(storable(str(item.title)).split()), -1 if page is None else page
