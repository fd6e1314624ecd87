"""A part of a document as HTML, with one range of it marked. Everything in it is text, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

from chat.markdown_blocks import split_blocks
from chat.rendering import render_markdown
from retrieval.extracts import MARKDOWN

PASSAGE = "passage"  # the id of the place a citation opens

# Stand in Markdown where the marked range begins and ends, and pass through its renderer as letters.
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
_OURS = str.maketrans({_OPEN: "\ufffd", _CLOSE: "\ufffd"})
_ENCODED = re.compile(f"[{_OPEN}{_CLOSE}]|%EE%83%B[01]", re.IGNORECASE)
_TAG = re.compile(r'(<[^<>"]*(?:"[^"]*"[^<>"]*)*>)')  # the cleaner closes every quote it opens
_BLOCK_MARK = re.compile(r"[ \t]*(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|>|\|)[ \t]*)*")
_PARAGRAPH = re.compile(r"\S.*?(?=\n[^\S\n]*\n|\s*\Z)", re.DOTALL)
_LONGEST_HEADING = 200


@dataclass(frozen=True, slots=True)
class Range:
    """Characters of the whole document; an empty one marks nothing."""

    start: int
    end: int

    def within(self, start: int, end: int) -> Range | None:
        """What of it lies between two places, counted from the first."""
        first, last = max(self.start, start), min(self.end, end)
        return Range(first - start, last - start) if first < last else None


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list, table or figure, and where it begins in the document."""

    start: int
    html: SafeString


def blocks_of(
    text: str, *, offset: int, media_type: str, marked: Range, headings: Collection[str] = frozenset()
) -> list[Block]:
    """The text that begins at `offset` of its document; lines that are one of `headings` are set as such."""
    text = text.translate(_OURS)
    if media_type == MARKDOWN:
        found = [(at, source, _markdown(source, part)) for at, source, part in _parts(text, offset, marked)]
    else:
        found = [(at, source, _plain(source, part, headings)) for at, source, part in _paragraphs(text, offset, marked)]
    blocks: list[Block] = []
    is_named = False
    for at, _, html in found:
        if not is_named and "<mark>" in html:
            html, is_named = html.replace("<mark>", f'<mark id="{PASSAGE}" tabindex="-1">', 1), True
        blocks.append(Block(at, mark_safe(html)))
    return blocks


def _parts(text: str, offset: int, marked: Range) -> Iterator[tuple[int, str, Range | None]]:
    position = 0
    for source in split_blocks(text):
        start = text.index(source, position)
        position = start + len(source)
        yield offset + start, source, marked.within(offset + start, offset + start + len(source.rstrip()))


def _paragraphs(text: str, offset: int, marked: Range) -> Iterator[tuple[int, str, Range | None]]:
    for match in _PARAGRAPH.finditer(text):
        start, end = offset + match.start(), offset + match.end()
        yield start, match[0], marked.within(start, end)


def _plain(source: str, part: Range | None, headings: Collection[str]) -> str:
    inner = escape(source)
    if part is not None:
        before, within, after = source[: part.start], source[part.start : part.end], source[part.end :]
        inner = f"{escape(before)}<mark>{escape(within)}</mark>{escape(after)}"
    if len(source) <= _LONGEST_HEADING and " ".join(source.split()) in headings:
        return f"<h3>{inner}</h3>"
    return f'<p class="plain">{inner}</p>'


def _markdown(source: str, part: Range | None) -> str:
    if part is None:
        return render_markdown(source)
    if not source[: part.start].strip() and not source[part.end :].strip():
        return _with_marks(render_markdown(source), is_marked=True)
    start = _past_block_mark(source, part.start)
    end = max(part.end, start)
    html = render_markdown(f"{source[:start]}{_OPEN}{source[start:end]}{_CLOSE}{source[end:]}")
    words = "".join(piece for piece in _TAG.split(html)[::2])
    if words.count(_OPEN) == words.count(_CLOSE) == 1 and words.index(_OPEN) < words.index(_CLOSE):
        return _with_marks(html, is_marked=False)
    return _with_marks(render_markdown(source), is_marked=True)


def _past_block_mark(source: str, position: int) -> int:
    """A mark inside “## ” or “- ” would undo what it says, so it begins after it."""
    line = source.rfind("\n", 0, position) + 1
    mark = _BLOCK_MARK.match(source, line)
    return max(position, mark.end()) if mark and mark.end() < len(source) else position


def _with_marks(html: str, *, is_marked: bool) -> str:
    """The words between the two letters of ours, or all of them, in `<mark>`; tags stay as the cleaner left them."""
    out: list[str] = []
    is_caption = False
    for place, piece in enumerate(_TAG.split(html)):
        if place % 2:
            is_caption = piece == "<figcaption>" or (is_caption and piece != "</figcaption>")
            out.append(_ENCODED.sub("", piece))
            continue
        for words in re.split(f"([{_OPEN}{_CLOSE}])", piece):
            if words in (_OPEN, _CLOSE):
                is_marked = words == _OPEN
            elif is_marked and words.strip() and not is_caption:
                out.append(f"<mark>{words}</mark>")
            else:
                out.append(words)
    return "".join(out)
