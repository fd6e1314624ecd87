"""The ways a run ends, and the one transaction in which it does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import connection, transaction
from django.utils import timezone

from billing import credits, pricing
from billing.pricing import Line
from chat.errors import LeaseLost
from chat.eventrows import events_of
from chat.events import (
    ContentChunk,
    ContentReplaced,
    Logged,
    MessageComplete,
    RunFailed,
    StatusUpdate,
    Terminal,
    ToolCallStart,
    payload,
)
from chat.memory.summary import ANSWER, mechanical
from chat.memory.tokens import count
from chat.metering import Facts, receipt, uncharged
from chat.models import Item, Run
from chat.queries import items_of
from chat.sources import Source, citations_of, without_numbers
from chat.vault import vault
from klerai.failpoints import failpoint

RESPONSE_POSITION = 10_000
TOOLS_PHASE = "tools"


@dataclass(frozen=True, slots=True)
class Answered:
    """The model answered, and cited these passages, in the order of their numbers; the first `named` as its sources.

    `is_tainted` says that outside text may have had a part in it, of this question or of one it follows.
    """

    text: str
    cited: tuple[Source, ...] = ()
    is_tainted: bool = True
    named: int = 0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class StoppedByPerson:
    """The person pressed Stop. What they have in front of them is charged; nothing is not."""

    cited: tuple[Source, ...] = ()
    named: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer. `code` is the contract's, `message` a sentence for the person."""

    code: str
    message: str
    is_retryable: bool = True
    details: dict[str, Any] = field(default_factory=dict)


Ending = Answered | StoppedByPerson | Failed

STOPPED = Failed("stopped", "Stopped by you. Nothing was written, so nothing was charged.")
INTERRUPTED = Failed(
    "interrupted", "The server restarted during this answer. The text so far is kept, and nothing was charged."
)
INTERNAL = Failed("internal", "Something broke on our side. Nothing was charged.")

_STATES = {"stopped": Run.State.STOPPED, "safety_blocked": Run.State.BLOCKED, "interrupted": Run.State.INTERRUPTED}


@dataclass(frozen=True, slots=True)
class Bill:
    """The lines of a run if it is charged, and what its receipt says beside money."""

    lines: tuple[Line, ...]
    facts: Facts


def end_run(run: Run, ending: Ending, bill: Bill, *, is_lost: bool = False) -> Logged:
    """End the run: state, last event, response, items and money in one transaction.

    Raises LeaseLost when the run is not this attempt's any more (or, for the sweeper's `is_lost`, when its lease is
    good again); then nothing has happened.
    """
    who = "sweeper" if is_lost else "runner"
    said = _said(run, ending, ending.text) if isinstance(ending, Answered) else None  # before anything is locked
    with transaction.atomic():
        failpoint(f"{who}_before_settle")
        text = ending.text if isinstance(ending, Answered) else answer_text(events_of(run.pk))
        if isinstance(ending, StoppedByPerson) and not text:
            ending = STOPPED
        lines = uncharged(bill.lines, why=_why(ending)) if isinstance(ending, Failed) else bill.lines
        if isinstance(ending, Failed):
            settlement = credits.release(run.person, run_id=run.pk)
        else:
            settlement = credits.settle(run.person, run_id=run.pk, lines=lines)
        paper = receipt(run, lines=lines, settlement=settlement, facts=bill.facts)
        terminal = _terminal(run, ending, text, paper)
        failpoint(f"{who}_after_settle")
        logged = _close_row(run, terminal, ending, said or _said(run, ending, text), is_lost=is_lost)
        failpoint(f"{who}_before_commit")
    failpoint(f"{who}_after_commit")
    return logged


def answer_text(events: Iterable[Logged]) -> str:
    """The words that count as the answer: those of the last turn, unless that turn went on to call a tool."""
    pieces: list[str] = []
    turn = 0
    for event in events:
        match event.type:
            case ContentChunk.type:
                if event.data["turn"] != turn:
                    turn, pieces = event.data["turn"], []
                pieces.append(event.data["text"])
            case ContentReplaced.type:
                pieces = [event.data["text"]]
            case ToolCallStart.type:
                pieces = []
            case StatusUpdate.type if event.data["phase"] == TOOLS_PHASE:
                pieces = []
    return "".join(pieces)


def bill_of_lost(run: Run) -> Bill:
    """What is known of a run whose process is gone: its base price and the tool calls it had finished."""
    calls: Sequence[Item] = [item for item in items_of([run])[run.pk] if item.kind == Item.Kind.TOOL]
    lines = [pricing.base_line(run.query_ref)]
    tools = []
    for call in calls:
        card = call.card or {}
        price = pricing.Price("tool", int(card.get("credits", 0)))
        lines.append(pricing.charged(price, ref=call.ref, note=call.tool))
        tools.append({"ref": call.ref, "name": call.tool, "ok": call.is_ok, "duration_ms": card.get("duration_ms", 0)})
    return Bill(tuple(lines), Facts(tools=tuple(tools)))


def _terminal(run: Run, ending: Ending, text: str, paper: dict[str, Any]) -> Terminal:
    match ending:
        case Answered(cited=cited, named=named, confidence=confidence):
            citations = list(citations_of(text, cited, named=named))
            return MessageComplete(run.response_ref, text, citations, paper, confidence=confidence)
        case StoppedByPerson(cited, named):
            citations = list(citations_of(text, cited, named=named))
            return MessageComplete(run.response_ref, text, citations, paper, stopped=True)
        case Failed(code, message, is_retryable, details):
            return RunFailed(code, message, is_retryable, details, paper)


def _state(ending: Ending) -> Run.State:
    match ending:
        case Answered():
            return Run.State.COMPLETED
        case StoppedByPerson():
            return Run.State.STOPPED
        case Failed(code):
            return _STATES.get(code, Run.State.FAILED)


def _why(ending: Ending) -> str:
    match ending:
        case Failed("stopped"):
            return "stopped before anything was written, so nothing is charged"
        case Failed("safety_blocked"):
            return "held back for safety, so nothing is charged"
        case _:
            return "no answer, so nothing is charged"


_CLOSE = """
WITH ended AS (
    UPDATE chat_run SET state = %(state)s, last_seq = last_seq + 1, ended_at = statement_timestamp(),
        model = %(model)s, error = %(error)s::jsonb, citations = %(citations)s::jsonb, confidence = %(confidence)s,
        receipt = %(receipt)s::jsonb, is_tainted = %(is_tainted)s
    WHERE id = %(id)s AND attempt = %(attempt)s AND state IN ('queued', 'running')
        AND (NOT %(is_lost)s OR lease_until < statement_timestamp())
    RETURNING id, conversation_id, last_seq
), logged AS (
    INSERT INTO chat_runevent (run_id, seq, type, data) SELECT id, last_seq, %(type)s, %(data)s::jsonb FROM ended
    WHERE NOT %(is_temporary)s
), kept AS (
    INSERT INTO chat_item
        (id, conversation_id, run_id, ref, kind, tool, content, summary, tokens, reopens, is_ok, position)
    SELECT gen_random_uuid(), conversation_id, id, %(ref)s, %(kind)s, '', %(text)s, %(summary)s, %(tokens)s, '', true,
        %(position)s
    FROM ended WHERE %(text)s <> '' AND NOT %(is_temporary)s
), touched AS (
    UPDATE chat_conversation SET updated_at = statement_timestamp() FROM ended
    WHERE chat_conversation.id = ended.conversation_id
)
SELECT last_seq FROM ended
"""


def _said(run: Run, ending: Ending, text: str) -> Item:
    """The words of the run as memory keeps them; without an answer they are kept apart."""
    cited = () if isinstance(ending, Failed) else citations_of(text, ending.cited, named=ending.named)
    sent = without_numbers(text, cited)
    tokens = count(text)
    return Item(
        conversation_id=run.conversation_id,
        run_id=run.pk,
        ref=run.response_ref,
        kind=Item.Kind.PARTIAL if isinstance(ending, Failed) else Item.Kind.RESPONSE,
        content=text,
        summary=mechanical(sent, ANSWER, tokens=tokens) or (sent if cited else None),
        tokens=tokens,
        position=RESPONSE_POSITION,
        created_at=timezone.now(),
    )


def _close_row(run: Run, terminal: Terminal, ending: Ending, said: Item, *, is_lost: bool) -> Logged:
    """State, last event and words in one statement."""
    error = None
    if isinstance(terminal, RunFailed):
        error = {name: getattr(terminal, name) for name in ("code", "message", "retryable", "details")}
    data = payload(terminal)
    citations = terminal.citations if isinstance(terminal, MessageComplete) and not run.is_temporary else []
    with connection.cursor() as cursor:
        cursor.execute(
            _CLOSE,
            {
                "state": _state(ending),
                "model": terminal.receipt["model"][:80],
                "error": None if error is None else _json(error),
                "citations": _json(citations),
                "confidence": None if run.is_temporary else data.get("confidence"),
                "receipt": _json(terminal.receipt),
                "is_tainted": not isinstance(ending, Answered) or ending.is_tainted,
                "id": run.pk,
                "attempt": run.attempt,
                "is_lost": is_lost,
                "type": terminal.type,
                "data": "{}" if run.is_temporary else _json(data),
                "is_temporary": run.is_temporary,
                "ref": run.response_ref,
                "kind": said.kind,
                "text": "" if run.is_temporary else said.content,
                "summary": None if run.is_temporary else said.summary,
                "tokens": said.tokens,
                "position": RESPONSE_POSITION,
            },
        )
        row = cursor.fetchone()
    if row is None:
        raise LeaseLost(run.pk)
    logged = Logged(row[0], terminal.type, data)
    if run.is_temporary:
        vault().note(run.pk, [logged], [said] if said.content else [])
    return logged


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
