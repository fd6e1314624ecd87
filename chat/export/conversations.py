"""One conversation as a file: as JSON with everything that is known of it, or as Markdown to read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from chat.export.archive import as_json
from chat.models import Conversation, Item, Run
from chat.queries import citations_of, is_gone, items_of
from chat.shapes import conversation_json

GONE = "The words of this temporary conversation are in no file: they were in the memory of one process only."
_AT_ONCE = 20
_WORDS = (Item.Kind.RESPONSE, Item.Kind.PARTIAL)


def conversation_as_json(conversation: Conversation) -> Iterator[str]:
    """Every branch, both memory tracks, citations and receipts; one question after the other."""
    head = {**conversation_json(conversation), "note": GONE if is_gone(conversation) else ""}
    yield as_json(head).removesuffix("\n}") + ',\n  "questions": ['
    comma = ""
    for run, items in _questions(conversation):
        yield comma + "\n" + as_json(_question(run, items))
        comma = ","
    yield "\n]}\n"


def conversation_as_markdown(conversation: Conversation) -> Iterator[str]:
    """Questions and answers in the order they were asked, with their sources and what each one cost."""
    yield f"# {_line(conversation.title) or 'A conversation'}\n\n"
    yield f"Begun {conversation.created_at:%Y-%m-%d %H:%M} UTC, mode {conversation.mode}.\n"
    if is_gone(conversation):
        yield f"\n{GONE}\n"
    for run, items in _questions(conversation):
        yield _told(run, items)


def _questions(conversation: Conversation) -> Iterator[tuple[Run, Sequence[Item]]]:
    """A few at a time, however long the conversation is."""
    runs = conversation.runs.select_related("parent").order_by("number")
    last = 0
    while few := list(runs.filter(number__gt=last)[:_AT_ONCE]):
        items = items_of(few)
        yield from ((run, items[run.pk]) for run in few)
        last = few[-1].number


def _question(run: Run, items: Sequence[Item]) -> dict[str, Any]:
    return {
        "query_id": run.query_ref,
        "run_id": str(run.run_id),
        "follows": run.parent.response_ref if run.parent else None,
        "mode": run.mode,
        "model": run.model,
        "state": run.state,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
        "citations": citations_of(run),
        "error": run.error,
        "receipt": run.receipt,
        "items": [_item(item) for item in items],
    }


def _item(item: Item) -> dict[str, Any]:
    """Without a summary of its own an item is sent as it is."""
    return {
        "id": item.ref,
        "kind": item.kind,
        "tool": item.tool,
        "full": item.content,
        "summarised": item.late_summary or item.summary or item.content,
        "tokens": item.tokens,
        "reopens": item.reopens,
        "card": item.card,
        "created_at": item.created_at,
    }


def _told(run: Run, items: Sequence[Item]) -> str:
    asked = next((item.content for item in items if item.kind == Item.Kind.QUERY), "")
    said = next((item.content for item in items if item.kind in _WORDS), "")
    follows = f", follows {run.parent.query_ref}" if run.parent else ""
    parts = [f"\n## {run.query_ref}: {run.created_at:%Y-%m-%d %H:%M} UTC{follows}\n", _quoted(asked)]
    parts += [f"*{_line(item.tool)}* ({item.ref})\n" for item in items if item.kind == Item.Kind.TOOL]
    parts.append(f"{said}\n" if said else f"*No answer: {run.state}.*\n")
    parts += [_source(cited) for cited in citations_of(run)]
    if run.receipt is not None:
        parts.append(f"\n*{run.receipt['credits']} credits*\n")
    return "\n".join(parts)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines()) + "\n"


def _source(cited: dict[str, Any]) -> str:
    where = cited.get("url") or cited.get("section") or ""
    return f"- [{cited['n']}] {_line(str(cited['title']))}{f', {_line(where)}' if where else ''}"


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
