"""Rows as the API says them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chat.endings import answer_text
from chat.errors import Refusal, TemporaryGone
from chat.eventrows import events_of
from chat.events import RunFailed
from chat.models import Conversation, Item, Run
from chat.queries import branch_shown, citations_of, confidence_of, is_gone, items_of, siblings_in

WORDS = (Item.Kind.RESPONSE, Item.Kind.PARTIAL)


def run_json(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.run_id),
        "state": run.state,
        "mode": run.mode,
        "conversation_id": str(run.conversation_id),
        "query_id": run.query_ref,
        "created_at": run.created_at.isoformat(),
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "text": text_of(run, items_of([run])[run.pk]),
        "error": run.error,
        "receipt": run.receipt,
        "last_seq": run.last_seq,
    }


def refusal_frame(refusal: Refusal, *, run_id: str | None) -> dict[str, Any]:
    """A question that was not taken, among events: an error without a run. Its number is 0 and no log has it."""
    data = {
        "code": refusal.code,
        "message": refusal.message,
        "retryable": refusal.status in (402, 429, 503),
        "details": refusal.details,
        "receipt": None,
    }
    return {"seq": 0, "run_id": run_id, "type": RunFailed.type, "data": data}


def text_of(run: Run, items: Sequence[Item]) -> str:
    """The words a person has in front of them: of a live run, those written so far."""
    if run.is_live:
        return answer_text(events_of(run.pk))
    return next((item.content for item in items if item.kind in WORDS), "")


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": str(conversation.pk),
        "title": conversation.title,
        "mode": conversation.mode,
        "pinned": conversation.is_pinned,
        "archived": conversation.is_archived,
        "temporary": conversation.is_temporary,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
    }


def thread_json(conversation: Conversation) -> dict[str, Any]:
    """The conversation with the messages of the branch shown, and the versions of each query."""
    if is_gone(conversation):
        raise TemporaryGone
    runs = branch_shown(conversation)
    items = items_of(runs)
    return {
        **conversation_json(conversation),
        "messages": [
            message_json(run, parent, items[run.pk]) for parent, run in zip([None, *runs], runs, strict=False)
        ],
        "branches": siblings_in(conversation),
    }


def message_json(run: Run, parent: Run | None, items: Sequence[Item]) -> dict[str, Any]:
    query = next((item for item in items if item.kind == Item.Kind.QUERY), None)
    return {
        "query_id": run.query_ref,
        "run_id": str(run.run_id),
        "parent": parent.response_ref if parent else None,
        "message": query.content if query else "",
        "text": text_of(run, items),
        "citations": citations_of(run),
        "confidence": confidence_of(run),
        "state": run.state,
        "created_at": run.created_at.isoformat(),
    }
