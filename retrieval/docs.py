"""The documentation of libraries, frameworks, services and APIs, as the chat asks for it."""

from __future__ import annotations

from retrieval.documentation.libraries import Library
from retrieval.documentation.pipeline import Documentation, look_up
from retrieval.documentation.ranking import Ranked
from retrieval.documentation.small import Form, SmallModel

SECONDS = 30.0

__all__ = ["Documentation", "Form", "Library", "Ranked", "SmallModel", "find_documentation"]


async def find_documentation(query: str, *, small: SmallModel | None = None, seconds: float = SECONDS) -> Documentation:
    """The sections that answer a question such as “Twitter OAuth setup” best, at most six of them.

    A small model names product and topic, picks the library and ranks the sections; without one, or where it does not
    answer, words and scores do. All of it is over within `seconds`. Raises NoDocumentation and
    DocumentationUnavailable.
    """
    return await look_up(query, small=small, seconds=seconds)
