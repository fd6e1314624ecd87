"""Takes a question in: run, query and hold in one transaction, once, however often it is sent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from billing import credits, pricing
from billing.credits import Shortfall
from billing.errors import AccountBlocked, BadAmount
from chat.errors import Refusal, TemporaryGone
from chat.memory.summary import QUESTION, mechanical
from chat.memory.tokens import count
from chat.models import Conversation, Item, Run
from chat.profiles import DEFAULT_MODE, PROFILES, missing_tools
from chat.queries import conversations_of, is_gone, live_or_same
from chat.questions import After, AtEnd, AtStart, Question
from chat.quotes import check_ceiling
from chat.shortage import insufficient_credits
from chat.vault import vault
from klerai.accounts.models import Person
from klerai.failpoints import failpoint

MAX_LIVE_RUNS = 3
MAX_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Accepted:
    """The run of a question. Only a new one is to be started; an old one is to be watched."""

    run: Run
    is_new: bool


def accept(person: Person, question: Question, *, tools: frozenset[str], lease_seconds: int) -> Accepted:
    """Store the question with its base price on hold. Raises Refusal, and then nothing was stored.

    The same run id with the same body gives the same run, with another body `run_conflict`. `tools` are the names
    registered here, for modes that cannot do without one.
    """
    try:
        quote = pricing.quote(person, max_credits=question.max_credits)
    except BadAmount as error:
        raise Refusal("invalid", f"max_credits: {error}", status=400, fields={"max_credits": [str(error)]}) from error
    with transaction.atomic():
        run_key = uuid.uuid4()
        failpoint("before_hold")
        held = _hold(person, run_key)  # locks the person's accounts: one at a time
        runs = live_or_same(person, question.run_id)
        known = _known(runs, question)
        if known is not None:
            transaction.set_rollback(True)
            return known
        conversation = _conversation(person, question)
        mode = _mode(question, conversation, tools)
        check_ceiling(PROFILES[mode], quote)
        _refuse_crowd(runs, conversation)
        if isinstance(held, Shortfall):
            raise insufficient_credits(person, held)
        run = _insert(person, question, conversation, mode=mode, run_key=run_key, quote=quote, lease=lease_seconds)
    failpoint("after_hold")
    return Accepted(run, is_new=True)


def _hold(person: Person, run_key: uuid.UUID) -> credits.Held | Shortfall:
    try:
        return credits.hold(person, run_id=run_key, amount=pricing.BASE)
    except AccountBlocked as error:
        raise Refusal(
            "forbidden",
            "Your credits do not add up, so nothing is spent until that is put right. Nothing was charged.",
            status=403,
        ) from error


def _known(runs: Sequence[Run], question: Question) -> Accepted | None:
    run = next((run for run in runs if run.run_id == question.run_id), None)
    if run is None:
        return None
    if run.asked != question.asked:
        raise Refusal(
            "run_conflict",
            "This question was already sent with other words. Reload to see it. Nothing was charged.",
            status=409,
            run_id=str(run.run_id),
        )
    return Accepted(run, is_new=False)


def _conversation(person: Person, question: Question) -> Conversation | None:
    if question.conversation_id is None:
        return None
    conversation = conversations_of(person).select_for_update().filter(pk=question.conversation_id).first()
    if conversation is None:
        raise Refusal("not_found", "There is nothing here, or it is not yours.", status=404)
    if is_gone(conversation):
        raise TemporaryGone
    return conversation


def _mode(question: Question, conversation: Conversation | None, tools: frozenset[str]) -> str:
    mode = question.mode or (conversation.mode if conversation else DEFAULT_MODE)
    missing = missing_tools(PROFILES[mode], tools)
    if missing:
        raise Refusal(
            "mode_unavailable",
            f"{PROFILES[mode].title} needs {' and '.join(missing)}, which this server does not have. "
            "Nothing was charged; ask in another mode.",
            status=409,
            mode=mode,
            missing=list(missing),
        )
    return mode


def _refuse_crowd(live: Sequence[Run], conversation: Conversation | None) -> None:
    for run in live:
        if conversation is not None and run.conversation_id == conversation.pk:
            raise Refusal(
                "conversation_busy",
                "This conversation is still answering a question. Nothing was charged; wait for it or stop it.",
                status=409,
                run_id=str(run.run_id),
            )
    if len(live) >= MAX_LIVE_RUNS:
        resets_at = (timezone.now() + timedelta(seconds=10)).isoformat()
        raise Refusal(
            "rate_limited",
            f"{MAX_LIVE_RUNS} of your questions are being answered; that is the most at a time. Nothing was charged. "
            "Wait for one to end, or stop one.",
            status=429,
            limit="questions at a time",
            used=len(live),
            max=MAX_LIVE_RUNS,
            resets_at=resets_at,
        )


_INSERT = """
WITH talk AS (
    INSERT INTO chat_conversation
        (id, person_id, title, mode, is_pinned, is_archived, is_temporary, query_counter, tip_id, created_at,
        updated_at)
    VALUES (%(talk)s, %(person)s, %(title)s, %(mode)s, false, false, %(is_temporary)s, %(number)s, %(id)s, %(now)s,
        %(now)s)
    ON CONFLICT (id) DO UPDATE SET mode = excluded.mode, query_counter = excluded.query_counter,
        tip_id = excluded.tip_id, updated_at = excluded.updated_at
), begun AS (
    INSERT INTO chat_run (id, run_id, person_id, conversation_id, number, parent_id, depth, mode, state, asked,
        has_tools, is_temporary, ceiling_credits, attempt, last_seq, lease_until, model, citations, summary_tokens,
        created_at)
    VALUES (%(id)s, %(run_id)s, %(person)s, %(talk)s, %(number)s, %(parent)s, %(depth)s, %(mode)s, 'running', %(asked)s,
        %(has_tools)s, %(is_temporary)s, %(ceiling)s, 1, 0, %(lease_until)s, '', '[]', 0, %(now)s)
)
INSERT INTO chat_item
    (id, conversation_id, run_id, ref, kind, tool, content, summary, tokens, reopens, is_ok, position)
SELECT gen_random_uuid(), %(talk)s, %(id)s, %(ref)s, 'query', '', %(message)s, %(summary)s, %(tokens)s, '', true, 0
WHERE NOT %(is_temporary)s
"""


def _insert(
    person: Person,
    question: Question,
    conversation: Conversation | None,
    *,
    mode: str,
    run_key: uuid.UUID,
    quote: pricing.Quote,
    lease: int,
) -> Run:
    """Run, query and the conversation's new end in one statement. Its row is locked or new: its counter may be read."""
    now = timezone.now()
    parent = _parent(question, conversation)
    run = Run(
        id=run_key,
        run_id=question.run_id,
        person=person,
        conversation_id=conversation.pk if conversation else uuid.uuid4(),
        number=conversation.query_counter + 1 if conversation else 1,
        parent=parent,
        depth=parent.depth + 1 if parent else 1,
        mode=mode,
        asked=question.asked,
        has_tools=question.has_tools,
        is_temporary=_is_temporary(question, conversation),
        ceiling_credits=quote.at_most,
        lease_until=now + timedelta(seconds=lease),
        created_at=now,
    )
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, _values(run, question.message))
    return run


def _values(run: Run, message: str) -> dict[str, Any]:
    """The run as a row, with its question; of a temporary one the words go into the vault in place of the row."""
    values: dict[str, Any] = {
        "id": run.pk,
        "run_id": run.run_id,
        "person": run.person_id,
        "talk": run.conversation_id,
        "title": _title(message),
        "number": run.number,
        "parent": run.parent_id,
        "depth": run.depth,
        "mode": run.mode,
        "asked": run.asked,
        "has_tools": run.has_tools,
        "is_temporary": run.is_temporary,
        "ceiling": run.ceiling_credits,
        "lease_until": run.lease_until,
        "ref": run.query_ref,
        "message": message,
        "summary": mechanical(message, QUESTION),
        "tokens": count(message),
        "now": run.created_at,
    }
    if run.is_temporary:
        vault().begin(_query(run, values))
        values |= {"title": "", "message": "", "summary": None}
    return values


def _is_temporary(question: Question, conversation: Conversation | None) -> bool:
    """A conversation is temporary from its first question on, or never; by setting all of them are."""
    if conversation is None:
        return question.is_temporary or settings.CONVERSATION_STORAGE == "memory"
    if question.is_temporary and not conversation.is_temporary:
        problem = "This conversation is kept. Begin a new one to have a temporary one."
        raise Refusal("invalid", f"temporary: {problem}", status=400, fields={"temporary": [problem]})
    return conversation.is_temporary


def _query(run: Run, values: dict[str, Any]) -> Item:
    return Item(
        conversation_id=run.conversation_id,
        run_id=run.pk,
        ref=run.query_ref,
        kind=Item.Kind.QUERY,
        content=values["message"],
        summary=values["summary"],
        tokens=values["tokens"],
        created_at=values["now"],
    )


def _parent(question: Question, conversation: Conversation | None) -> Run | None:
    match question.place:
        case AtEnd():
            return conversation.tip if conversation else None
        case AtStart():
            return None
        case After(number):
            found = conversation.runs.filter(number=number).first() if conversation else None
            if found is None:
                problem = f"There is no q{number}-r in this conversation."
                raise Refusal("invalid", f"parent: {problem}", status=400, fields={"parent": [problem]})
            return found


def _title(message: str) -> str:
    line = " ".join(message.split())
    if len(line) <= MAX_TITLE_CHARACTERS:
        return line
    return line[:MAX_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"
