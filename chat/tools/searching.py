"""What the two tools that search the knowledge bases have in common."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from chat.passages import kept, told, worded
from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.web_passages import places_of, told_kept, worded_kept
from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.errors import NoSuchKnowledgeBase, RetrievalError
from retrieval.knowledge import knowledge_bases_of
from retrieval.passages import Found
from retrieval.search import search
from retrieval.web_results import KeptAnswer, found_by_keywords

DEFAULT = "default_kb"
MOST_LISTED = 30


async def passages_for(
    query: str, context: ToolContext, *, knowledge_base: str = DEFAULT, limit: int = 5
) -> ToolOutput | ToolFailure:
    """Search what the person may read, and what the web told them earlier under keywords of the query.

    Tenancy comes from the context, never from the arguments, and so does the only knowledge base of a question that
    has one.
    """
    knowledge_base = context.knowledge_base or knowledge_base
    person, from_web = await in_database(_searcher, context, query)
    try:
        found = await search(person, query, knowledge_base=knowledge_base, limit=limit, rerank=reranker_by_settings())
    except NoSuchKnowledgeBase as error:
        slugs = ", ".join([DEFAULT, *await in_database(_slugs, person)])
        return ToolFailure(f"{error} There are: {slugs}.", is_retryable=True)
    except RetrievalError as error:
        return ToolFailure(f"{error} Go on without it.", is_retryable=False)
    return _with_earlier_answers(found, from_web, context) if from_web else _alone(found, context)


def _searcher(context: ToolContext, query: str) -> tuple[Person, list[KeptAnswer]]:
    """Who searches, and what the web told them earlier."""
    person = Person.objects.get(pk=context.person_id)
    return person, found_by_keywords(person, query)


def _alone(found: Found, context: ToolContext) -> ToolOutput:
    return ToolOutput(worded(found, context.sources), told(found), card=kept(found))


def _with_earlier_answers(found: Found, from_web: Sequence[KeptAnswer], context: ToolContext) -> ToolOutput:
    now = timezone.now()
    text = f"{worded(found, context.sources)}\n{worded_kept(from_web, context.sources, now=now)}"
    places = [*kept(found)["sources"], *(place for one in from_web for place in places_of(one.answer))]
    summary = f"{told(found).removesuffix('.')}; {told_kept(from_web, now=now)}"
    return ToolOutput(text, summary, card={**kept(found), "sources": places})


def _slugs(person: Person) -> list[str]:
    return list(dict.fromkeys(knowledge_bases_of(person).values_list("slug", flat=True)[:MOST_LISTED]))
