"""Links in words that are already safe HTML: an ID leads to its item in the conversation's memory, if it exists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from django.urls import reverse

from chat.models import Conversation
from chat.queries import items_of

_TAG = re.compile(r"(<[^>\"]*(?:\"[^\"]*\"[^>\"]*)*>)")
_ID = re.compile(r"(?<![\w#/-])(q[1-9]\d{0,5}(?:-(?:r|t[1-9]\d{0,3}))?)(?:-sum)?(?![\w-])")
_UNLINKED = ("a", "pre")


@dataclass(frozen=True, slots=True)
class ItemLinks:
    """The addresses of the items of a conversation, by ID."""

    addresses: Mapping[str, str]

    def in_html(self, html: str) -> str:
        """Safe HTML with its IDs as links; links and code blocks stay as they are."""
        if not self.addresses:
            return html
        return _in_words(html, lambda words: _ID.sub(self._link, words))

    def in_text(self, text: str) -> str:
        """Plain text as safe HTML with its IDs as links."""
        return _ID.sub(self._link, escape(text))

    def _link(self, found: re.Match[str]) -> str:
        address = self.addresses.get(found[1])
        return found[0] if address is None else f'<a class="item-link" href="{address}">{found[0]}</a>'


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


def _in_words(html: str, change: Callable[[str], str]) -> str:
    """Change the words between the tags, but those inside of links and code blocks."""
    parts: list[str] = []
    inside = ""
    for part in _TAG.split(html):
        if part.startswith("<") and part.endswith(">"):
            name = part.strip("</> ").split(" ", 1)[0].split(">", 1)[0]
            if name in _UNLINKED:
                inside = "" if part.startswith("</") else name
            parts.append(part)
        else:
            parts.append(part if inside else change(part))
    return "".join(parts)
