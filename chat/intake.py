"""Takes a question in: run, query and hold in one transaction, once, however often it is sent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from billing import credits, pricing
from billing.credits import Shortfall
from billing.errors import AccountBlocked, BadAmount
from chat.errors import Refusal
from chat.models import Conversation, Item, Run
from chat.profiles import DEFAULT_MODE, PROFILES, missing_tools
from chat.queries import conversations_of, runs_of
from chat.questions import After, AtEnd, AtStart, Question
from klerai.accounts.models import Person
from klerai.failpoints import failpoint

MAX_LIVE_RUNS = 3
MAX_TITLE_CHARACTERS = 60
UPGRADE_URL = "/billing/"


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
        runs = list(_live_or_same(person, question))
        known = _known(runs, question)
        if known is not None:
            transaction.set_rollback(True)
            return known
        conversation = _conversation(person, question)
        mode = _mode(question, conversation, tools)
        _refuse_crowd(runs, conversation)
        if isinstance(held, Shortfall):
            raise insufficient_credits(held)
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


def insufficient_credits(shortfall: Shortfall) -> Refusal:
    """The 402 of the contract: which limit, and when it opens again."""
    return Refusal(
        "insufficient_credits",
        f"You have {shortfall.balance} credits; a question needs {shortfall.required}. Nothing was charged.",
        status=402,
        **shortfall_details(shortfall),
    )


def shortfall_details(shortfall: Shortfall) -> dict[str, Any]:
    limit = shortfall.limit
    resets_at = limit.resets_at.isoformat()
    return {
        "balance": shortfall.balance,
        "required": shortfall.required,
        "limit": {"name": limit.name, "used": limit.used, "max": limit.max, "resets_at": resets_at},
        "resets_at": resets_at,
        "upgrade_url": UPGRADE_URL,
    }


def _live_or_same(person: Person, question: Question) -> QuerySet[Run]:
    """What decides whether the question is new and whether there is room: one query for both."""
    wanted = Q(state__in=Run.LIVE) | Q(run_id=question.run_id)
    return runs_of(person).filter(wanted).order_by("created_at")


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
            f"{MAX_LIVE_RUNS} of your questions are being answered; that is the most at a time. Nothing was charged.",
            status=429,
            limit="questions at a time",
            used=len(live),
            max=MAX_LIVE_RUNS,
            resets_at=resets_at,
        )


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
    """Run and query, and the conversation's new end. Its row is locked or new, so that its counter may be read."""
    parent = _parent(question, conversation)
    number = conversation.query_counter + 1 if conversation else 1
    news = {"query_counter": number, "tip_id": run_key, "mode": mode, "updated_at": timezone.now()}
    if conversation is None:
        conversation = Conversation.objects.create(person=person, title=_title(question.message), **news)
    else:
        Conversation.objects.filter(pk=conversation.pk).update(**news)
    run = Run.objects.create(
        id=run_key,
        run_id=question.run_id,
        person=person,
        conversation=conversation,
        number=number,
        parent=parent,
        mode=mode,
        asked=question.asked,
        has_tools=question.has_tools,
        ceiling_credits=quote.at_most,
        lease_until=timezone.now() + timedelta(seconds=lease),
    )
    Item.objects.create(
        conversation=conversation, run=run, ref=run.query_ref, kind=Item.Kind.QUERY, content=question.message
    )
    return run


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
