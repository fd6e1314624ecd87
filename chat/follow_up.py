"""What is done once a run has ended, and nobody waits for: keywords for what the web said, summaries for memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import DatabaseError

from chat.models import Run
from klerai.database import in_database
from retrieval.web_results import index_unnamed

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The steps in order; one that fails does not keep the next from its work."""

    summarise: Callable[[UUID], Awaitable[None]] | None
    knows_web: bool

    async def __call__(self, run_key: UUID) -> None:
        if self.knows_web:
            try:
                await in_database(index_web_results, run_key)
            except DatabaseError:
                logger.exception("keywords_not_indexed")
        if self.summarise is not None:
            await self.summarise(run_key)


def index_web_results(run_key: UUID) -> int:
    """Index what the web told a run where the model, which owed it, did not; how many results."""
    run = Run.objects.only("conversation_id", "number").get(pk=run_key)
    return index_unnamed(run.conversation_id, run.query_ref)
