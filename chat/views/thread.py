"""A conversation as its page shows it: questions, activity, answers and what each one cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from chat.answer_links import Citation, ItemLinks, item_links, with_citations
from chat.models import Conversation, Item, Run
from chat.profiles import PROFILES
from chat.queries import branch_to, citations_of, confidence_of, items_of, newest_end, siblings_in
from chat.rendering import render_blocks
from chat.sources import confidence_words, section_below
from chat.templatetags.page import credits, duration
from chat.views.citations import cited_in
from chat.views.notices import LimitNote, Notice, limits_met, notice_of
from chat.views.places import Place, Places, places_of
from chat.views.receipts import ReceiptView, receipt_of
from chat.views.tool_words import icon_of, what_was_used

SHOWN_RUNS = 30

_RETRYABLE = frozenset({Run.State.FAILED, Run.State.INTERRUPTED, Run.State.BLOCKED})


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage a search found; `href` is empty when its document is gone."""

    title: str
    section: str
    href: str


@dataclass(frozen=True, slots=True)
class Card:
    """What one tool call came to."""

    id: str
    name: str
    icon: str
    label: str
    state: str
    state_words: str
    summary: str
    cost: str
    milliseconds: int
    share: str
    found: tuple[FoundPassage, ...]
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Versions:
    """Where a question stands among those asked in its place."""

    place: int
    count: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RunView:
    run_id: UUID
    conversation_id: UUID
    query_id: str
    number: int
    state: str
    is_live: bool
    is_retryable: bool
    parent: str
    question: str
    cards: tuple[Card, ...]
    fold: str
    blocks: tuple[SafeString, ...]
    citations: tuple[Citation, ...]
    confidence: str
    has_answer: bool
    notice: Notice | None
    limits: tuple[LimitNote, ...]
    receipt: ReceiptView | None
    versions: Versions | None


def branch_through(conversation: Conversation, number: int | None, *, last: int) -> list[Run]:
    """The end of the branch shown last, or of the newest one that goes through this question, which is then in it."""
    chosen = None if number is None else conversation.runs.filter(number=number).first()
    if chosen is None:
        return branch_to(conversation.tip, last=last)
    tip = newest_end(chosen)
    return branch_to(tip, last=max(last, tip.depth - chosen.depth + 1))


def thread_of(conversation: Conversation, runs: Sequence[Run]) -> list[RunView]:
    """The given runs of one branch, ready to be shown."""
    items = items_of(runs)
    versions = siblings_in(conversation, of=runs)
    follows = [run.parent_id for run in runs if run.parent_id]
    parents = dict(conversation.runs.filter(pk__in=follows).values_list("pk", "number"))
    said = {key: _said(found) for key, found in items.items()}
    links = item_links(conversation, (text for words in said.values() for text in words.values()))
    cited = {run.pk: citations_of(run) for run in runs}
    found = (place for several in items.values() for item in several for place in _found(item))
    places = places_of(conversation.person, chain(*cited.values(), found))
    return [_view(run, items.get(run.pk, []), versions, parents, links, cited[run.pk], places) for run in runs]


def _found(item: Item) -> Sequence[Place]:
    """The passages a search found."""
    return (item.card or {}).get("sources") or ()


def _said(items: Sequence[Item]) -> dict[str, str]:
    return {item.kind: item.content for item in items if item.kind != Item.Kind.TOOL}


def _view(
    run: Run,
    items: Sequence[Item],
    versions: Mapping[str, Sequence[str]],
    parents: Mapping[UUID, int],
    links: ItemLinks,
    citations: Sequence[Place],
    places: Places,
) -> RunView:
    said = _said(items)
    cited, confidence = cited_in(run, citations, places), confidence_of(run)
    used = [item for item in items if item.kind == Item.Kind.TOOL]
    cards = () if run.is_live else _cards(used, places, total=_total_ms(run))
    text = "" if run.is_live else said.get(Item.Kind.RESPONSE) or said.get(Item.Kind.PARTIAL) or ""
    return RunView(
        run_id=run.run_id,
        conversation_id=run.conversation_id,
        query_id=run.query_ref,
        number=run.number,
        state=run.state,
        is_live=run.is_live,
        is_retryable=run.state in _RETRYABLE,
        parent=f"q{parents[run.parent_id]}-r" if run.parent_id else "",
        question=said.get(Item.Kind.QUERY, ""),
        cards=cards,
        fold=_fold(cards, closing=PROFILES[run.mode].closing_tool, total=_total_ms(run)),
        blocks=tuple(mark_safe(with_citations(links.in_html(block), cited)) for block in render_blocks(text)),
        citations=cited,
        confidence="" if confidence is None else confidence_words(confidence),
        has_answer=bool(text),
        notice=notice_of(run),
        limits=limits_met(run),
        receipt=receipt_of(run, {item.ref: item.tool for item in used}),
        versions=_versions(run, versions.get(run.query_ref)),
    )


def _total_ms(run: Run) -> float:
    return (run.ended_at - run.created_at).total_seconds() * 1000 if run.ended_at else 0


def _cards(used: Sequence[Item], places: Places, *, total: float) -> tuple[Card, ...]:
    """The cards in call order; their bars are drawn as parts of the longest time, the whole run's if that is known."""
    times = [int((item.card or {}).get("duration_ms") or 0) for item in used]
    longest = max([total, *times]) or 1
    return tuple(
        _card(item, places, took=took, share=f"{100 * took / longest:.1f}%")
        for item, took in zip(used, times, strict=True)
    )


def _card(item: Item, places: Places, *, took: int, share: str) -> Card:
    shown: Mapping[str, Any] = item.card or {}
    failure = shown.get("error") or shown.get("summary") or "It gave no result."
    return Card(
        id=item.ref,
        name=item.tool,
        icon=icon_of(item.tool),
        label=shown.get("label") or item.tool,
        state="ok" if item.is_ok else "failed",
        state_words="done" if item.is_ok else "failed",
        summary=shown.get("summary") or "" if item.is_ok else failure,
        cost=f"{duration(took)} · {credits(shown.get('credits') or 0)}" if item.is_ok else "not charged",
        milliseconds=took,
        share=share,
        found=tuple(_passage(place, places) for place in _found(item)),
        arguments=tuple((name, _words(value)) for name, value in (shown.get("arguments") or {}).items()),
    )


def _passage(place: Place, places: Places) -> FoundPassage:
    return FoundPassage(place["title"], section_below(place["title"], place.get("section")), places.address(place))


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fold(cards: Sequence[Card], *, closing: str | None, total: float) -> str:
    """The activity in one line, failures named; that the answer was given goes without saying.

    Calls ran side by side, so together they took no more than the run.
    """
    cards = [card for card in cards if card.name != closing or card.state == "failed"] or cards
    failed = sum(card.state == "failed" for card in cards)
    count = f"{len(cards)} {'tool' if len(cards) == 1 else 'tools'}" + (f", {failed} failed" if failed else "")
    took = duration(min(sum(card.milliseconds for card in cards), total)).replace(" ", "\u00a0")
    return f"Used {what_was_used(card.name for card in cards)} · {count} · {took}"


def _versions(run: Run, refs: Sequence[str] | None) -> Versions | None:
    if not refs:
        return None
    place = refs.index(run.query_ref)
    page = reverse("conversation", args=[run.conversation_id])
    link = [f"{page}?at={ref[1:]}#{ref}" for ref in refs]
    return Versions(
        place=place + 1,
        count=len(refs),
        before=link[place - 1] if place else "",
        after=link[place + 1] if place + 1 < len(refs) else "",
    )
