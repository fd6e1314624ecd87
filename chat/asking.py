"""The way in for every door: take a question, start its run, watch what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from django.utils import timezone

from chat.errors import Refusal, TemporaryGone
from chat.events import Logged
from chat.intake import accept
from chat.models import Run
from chat.queries import run_of
from chat.questions import Question, read_question
from chat.vault import vault
from chat.wiring import Runtime
from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.errors import NoSuchKnowledgeBase
from retrieval.knowledge import searched

FULL_SECONDS = 5


async def ask(runtime: Runtime, person: Person, body: Any, *, is_attended: bool) -> Run:
    """The run of the question in `body`, started if it is new. Raises Refusal.

    The run does not belong to the caller: it goes on whatever becomes of the door. `is_attended` says whether somebody
    stands there who can be asked to confirm what a tool would do.
    """
    question = read_question(body)
    if question.knowledge_base is not None:
        await in_database(_check_scope, person, question.knowledge_base)
    if not runtime.runner.has_room and await in_database(run_of, person, question.run_id) is None:
        raise Refusal(
            "capacity",
            "The server has as many questions as it can answer. Nothing was charged; try again in a few seconds.",
            status=503,
            retry_after=FULL_SECONDS,
            limit="questions on this server at a time",
            used=runtime.runner.live_runs,
            max=runtime.runner.max_runs,
            resets_at=(timezone.now() + timedelta(seconds=FULL_SECONDS)).isoformat(),
        )
    return await asyncio.shield(_take_in(runtime, person, question, is_attended=is_attended))


def _check_scope(person: Person, slug: str) -> None:
    """A knowledge base that is not theirs to read does not exist."""
    try:
        searched(person, slug)
    except NoSuchKnowledgeBase as error:
        raise Refusal("not_found", "There is nothing here, or it is not yours.", status=404) from error


async def _take_in(runtime: Runtime, person: Person, question: Question, *, is_attended: bool) -> Run:
    """Accept and start in one piece: a client who leaves in between would leave a run that nobody conducts."""
    lease = runtime.log.lease_seconds
    accepted = await in_database(accept, person, question, tools=frozenset(runtime.tools), lease_seconds=lease)
    if accepted.is_new:
        runtime.runner.start(accepted.run, question, is_attended=is_attended)
    return with_words(accepted.run)


def with_words(run: Run) -> Run:
    """The run, if what was said in it can be shown from here. Raises TemporaryGone."""
    if run.is_temporary and not vault().holds(run.pk):
        raise TemporaryGone
    return run


async def outcome(runtime: Runtime, run: Run) -> Logged:
    """The terminal event of a run, waited for: FINAL_ONLY, which is `follow` collected."""
    async with aclosing(follow(runtime, run)) as events:
        async for event in events:
            if event.is_terminal:
                return event
    raise Refusal("not_found", "There is nothing here, or it is not yours.", status=404)


async def follow(runtime: Runtime, run: Run, *, after: int = 0) -> AsyncGenerator[Logged]:
    """The events of a run behind `after`, one by one, until the terminal one: PROGRESSIVE."""
    async with aclosing(runtime.log.follow(run.pk, after=after)) as batches:
        async for batch in batches:
            for event in batch:
                yield event
