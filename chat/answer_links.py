"""Links in words that are already safe HTML: IDs to the items of the memory, numbers to the passages they cite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from django.template.loader import render_to_string
from django.urls import reverse

from chat.models import Conversation
from chat.queries import items_of
from chat.sources import ORIGINS, Origin

_TAG = re.compile(r"(<[^>\"]*(?:\"[^\"]*\"[^>\"]*)*>)")
_ID = re.compile(r"(?<![\w#/-])(q[1-9]\d{0,5}(?:-(?:r|t[1-9]\d{0,3}))?)(?:-sum)?(?![\w-])")
_NUMBER = re.compile(r"\s?\[(\d{1,3})\]")
_UNLINKED = ("a", "pre", "code")


@dataclass(frozen=True, slots=True)
class ItemLinks:
    """The addresses of the items of a conversation, by ID."""

    addresses: Mapping[str, str]

    def in_html(self, html: str) -> str:
        """Safe HTML with its IDs as links; links and code blocks stay as they are."""
        if not self.addresses:
            return html
        return _in_words(html, lambda words: _ID.sub(self._link, words), apart_from=("a", "pre"))

    def in_text(self, text: str) -> str:
        """Plain text as safe HTML with its IDs as links."""
        return _ID.sub(self._link, escape(text))

    def _link(self, found: re.Match[str]) -> str:
        address = self.addresses.get(found[1])
        return found[0] if address is None else f'<a class="item-link" href="{address}">{found[0]}</a>'


@dataclass(frozen=True, slots=True)
class Citation:
    """What a number in an answer stands for. `href` opens the passage, `panel` is the address of its view.

    `origin` says whether it comes from inside, the person's documents, or from where outside.
    """

    n: int
    title: str
    section: str
    quote: str
    href: str
    panel: str
    origin: Origin

    @property
    def is_inside(self) -> bool:
        return self.origin == "internal"

    @property
    def from_where(self) -> str:
        return ORIGINS[self.origin]

    @property
    def label(self) -> str:
        return f"Source {self.n}: {self.title}" + (f", {self.section}" if self.section else "")


def with_citations(html: str, citations: Iterable[Citation]) -> str:
    """Safe HTML with the numbers of these citations as links that show what they cite."""
    known = {str(citation.n): citation for citation in citations}
    if not known:
        return html

    def linked(found: re.Match[str]) -> str:
        citation = known.get(found[1])
        if citation is None:
            return found[0]
        return render_to_string("chat/cite.html", {"citation": citation}).strip()

    return _in_words(html, lambda words: _NUMBER.sub(linked, words))


def item_links(conversation: Conversation, texts: Iterable[str]) -> ItemLinks:
    """Links for those IDs named in the texts that exist in the conversation; no query where none is named."""
    named = {found[1] for text in texts for found in _ID.finditer(text)}
    if not named:
        return ItemLinks({})
    page = reverse("memory", args=[conversation.pk])
    return ItemLinks({ref: f"{page}#{ref}" for ref in _existing(conversation, named)})


def _existing(conversation: Conversation, named: set[str]) -> set[str]:
    if conversation.is_temporary:
        held = items_of(conversation.runs.all())
        return named & {item.ref for items in held.values() for item in items}
    return set(conversation.items.filter(ref__in=named).values_list("ref", flat=True))


def _in_words(html: str, change: Callable[[str], str], *, apart_from: tuple[str, ...] = _UNLINKED) -> str:
    """Change the words between the tags, apart from those inside of certain elements."""
    parts: list[str] = []
    inside = ""
    for part in _TAG.split(html):
        if part.startswith("<") and part.endswith(">"):
            name = part.strip("</> ").split(" ", 1)[0].split(">", 1)[0]
            if name in apart_from and (not inside or name == inside):
                inside = "" if part.startswith("</") else name
            parts.append(part)
        else:
            parts.append(part if inside else change(part))
    return "".join(parts)
