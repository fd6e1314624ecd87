"""The vectors of a document's passages, made before anything of it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from retrieval.embedders.base import Embedder
from retrieval.embedders.choosing import embedder_by_settings, embedder_named
from retrieval.errors import EmbedderFailed
from retrieval.ingestion.passages import Vectors
from retrieval.models import KnowledgeBase
from retrieval.windows import windows_of

Noted = Callable[[float], Awaitable[None]]  # how much is done, 0 to 1
AT_ONCE = 256  # windows between two looks at the progress


async def embedded(knowledge_base: KnowledgeBase, texts: Sequence[str], *, note: Noted | None = None) -> Vectors | None:
    """The vectors of the windows of each text, by the embedder the knowledge base is searched with.

    None where none is set up. Raises EmbedderFailed.
    """
    embedder = _embedder_of(knowledge_base)
    if embedder is None:
        return None
    by_text = await asyncio.to_thread(lambda: [windows_of(text) for text in texts])
    windows = [window for of_one in by_text for window in of_one]
    made = []
    try:
        for start in range(0, len(windows), AT_ONCE):
            made += await embedder.batch_embed(windows[start : start + AT_ONCE])
            if note is not None:
                await note(len(made) / len(windows))
    finally:
        await embedder.aclose()
    vectors = iter(made)
    return Vectors(embedder.name, [[next(vectors) for _ in of_one] for of_one in by_text])


def _embedder_of(knowledge_base: KnowledgeBase) -> Embedder | None:
    if not knowledge_base.embedder:
        return embedder_by_settings()
    found = embedder_named(knowledge_base.embedder)
    if found is None:
        raise EmbedderFailed(f"The embedder {knowledge_base.embedder} is not set up here.")
    return found
