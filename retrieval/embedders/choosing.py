"""Which embedder and which reranker work, by the settings."""

from __future__ import annotations

import asyncio

from django.conf import settings

from retrieval.embedders.base import Embedder
from retrieval.embedders.caching import Cached
from retrieval.embedders.wordllama import WordLlama
from retrieval.rerank import Reranker


def embedder_by_settings() -> Embedder | None:
    """The one that new knowledge bases take; None when KLERAI_EMBEDDER is `none`.

    It is a handle that costs nothing to make and holds nothing open.
    """
    return embedder_of_kind(settings.EMBEDDER)


def embedder_named(name: str) -> Embedder | None:
    """The one whose vectors bear this name, such as a knowledge base's; None when it is not set up here.

    With KLERAI_EMBEDDER `none` there is none: what was embedded before is searched by keyword, and left as it is.
    """
    if settings.EMBEDDER == "none":
        return None
    kind, _, rest = name.partition("/")
    model, _, _ = rest.rpartition("/")
    embedder = embedder_of_kind(kind, voyage_model=model if kind == "voyage" else "")
    return embedder if embedder is not None and embedder.name == name else None


def embedder_of_kind(kind: str, *, voyage_model: str = "") -> Embedder | None:
    """One of KINDS; None when its key is missing or there is no such kind.

    What vendors say is kept, so that no text is paid for twice; WordLlama is quicker than looking it up would be.
    """
    match kind:
        case "voyage" if settings.VOYAGE_API_KEY:
            from retrieval.embedders.voyage import Voyage

            return Cached(Voyage(model=voyage_model or settings.VOYAGE_MODEL))
        case "gemini" if settings.GEMINI_API_KEY:
            from retrieval.embedders.gemini import Gemini

            return Cached(Gemini())
        case "ollama":
            from retrieval.embedders.ollama import Ollama

            return Cached(Ollama())
        case "wordllama":
            return WordLlama()
    return None


def reranker_by_settings() -> Reranker | None:
    """Scores of passages for a question, 0 to 1 and the higher the better, in their order; None without a key."""
    if not settings.VOYAGE_API_KEY:
        return None
    from retrieval.embedders.voyage import rerank

    return rerank


async def warm() -> None:
    """Load what the first search would wait for: a model, or a vendor's SDK."""
    match settings.EMBEDDER:
        case "wordllama":
            await WordLlama().warm()
        case "voyage":
            from retrieval.embedders.voyage import import_sdk

            await asyncio.to_thread(import_sdk)
