"""What the two tools that search the knowledge bases have in common."""

from __future__ import annotations

from chat.passages import kept, told, worded
from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from klerai.accounts.models import Person
from klerai.database import in_database
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.errors import NoSuchKnowledgeBase, RetrievalError
from retrieval.knowledge import knowledge_bases_of
from retrieval.search import search

DEFAULT = "default_kb"
MOST_LISTED = 30


async def passages_for(
    query: str, context: ToolContext, *, knowledge_base: str = DEFAULT, limit: int = 5
) -> ToolOutput | ToolFailure:
    """Search what the person may read. Tenancy comes from the context, never from the arguments."""
    person = await in_database(Person.objects.get, pk=context.person_id)
    try:
        found = await search(person, query, knowledge_base=knowledge_base, limit=limit, rerank=reranker_by_settings())
    except NoSuchKnowledgeBase as error:
        slugs = ", ".join([DEFAULT, *await in_database(_slugs, person)])
        return ToolFailure(f"{error} There are: {slugs}.", is_retryable=True)
    except RetrievalError as error:
        return ToolFailure(f"{error} Go on without it.", is_retryable=False)
    return ToolOutput(worded(found, context.sources), told(found), card=kept(found))


def _slugs(person: Person) -> list[str]:
    return list(dict.fromkeys(knowledge_bases_of(person).values_list("slug", flat=True)[:MOST_LISTED]))
