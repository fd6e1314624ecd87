"""Confirmations: asked for by a run, given by its person, once, for exactly the arguments that were shown."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import orjson
from django.utils import timezone

from chat.errors import Refusal
from chat.models import Confirmation, Run
from chat.queries import run_of
from chat.tools.confirmation import Decision
from klerai.accounts.models import Person
from klerai.database import in_database

WAITS = timedelta(minutes=10)
LOOK_EVERY_SECONDS = 0.3


class Clock(Protocol):
    """The deadline of a run, which stands still while its person is asked."""

    def paused(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class AsksPerson:
    """The confirmer of a run; `is_attended` says whether somebody stands at the door who can answer."""

    run_key: UUID
    clock: Clock
    is_attended: bool

    async def begin(self, ref: str, arguments: Mapping[str, Any]) -> str | None:
        if not self.is_attended:
            return None
        token = secrets.token_urlsafe(24)
        await in_database(_keep, self.run_key, ref, token, arguments)
        return token

    async def decision(self, ref: str, arguments: Mapping[str, Any]) -> Decision:
        """Wait, outside the deadline, until the person has decided or ten minutes are over."""
        with self.clock.paused():
            while (decided := await in_database(_decided, self.run_key, ref, arguments)) is None:
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        return decided


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a call that waits for them."""

    call_id: str
    token: str
    approve: bool


def read_answer(body: Any) -> Answer:
    """The answer in a JSON object `{call_id, token, approve}`. Raises Refusal."""
    match body:
        case {"call_id": str() as call_id, "token": str() as token, "approve": bool() as approve}:
            return Answer(call_id, token, approve)
    raise Refusal("invalid", "Send call_id and token as you got them, and approve as true or false.", status=400)


def confirm(person: Person, run_id: UUID, answer: Answer) -> Run | None:
    """Decide a waiting call; None when the run is not the person's.

    Raises Refusal (409) for a token that is wrong, was used, or came too late.
    """
    run = run_of(person, run_id)
    if run is None:
        return None
    now = timezone.now()
    waiting = Confirmation.objects.filter(run=run, ref=answer.call_id, is_approved=None, expires_at__gt=now)
    found = waiting.filter(token_digest=_digest(answer.token)) if run.is_live else waiting.none()
    if not found.update(is_approved=answer.approve, decided_at=now):
        raise Refusal(
            "confirmation_conflict",
            "This confirmation was used already, is too old or is not of this call. Nothing was sent.",
            status=409,
        )
    return run


def _keep(run_key: UUID, ref: str, token: str, arguments: Mapping[str, Any]) -> None:
    Confirmation.objects.create(
        run_id=run_key,
        ref=ref,
        token_digest=_digest(token),
        arguments_digest=_digest_of(arguments),
        expires_at=timezone.now() + WAITS,
    )


def _decided(run_key: UUID, ref: str, arguments: Mapping[str, Any]) -> Decision | None:
    row = Confirmation.objects.get(run=run_key, ref=ref)
    if row.is_approved is None:
        return Decision.EXPIRED if row.expires_at <= timezone.now() else None
    is_same = hmac.compare_digest(row.arguments_digest, _digest_of(arguments))
    return Decision.APPROVED if row.is_approved and is_same else Decision.DENIED


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest_of(arguments: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)).hexdigest()
