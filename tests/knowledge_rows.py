"""Knowledge bases as rows, for tests of what is done with chunks that are already there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from hashlib import sha256

from klerai.accounts.models import Person
from retrieval.models import Chunk, Document, KnowledgeBase, Window


def make_knowledge_base(*texts: str, owner: Person | None = None, embedder: str = "") -> KnowledgeBase:
    """One of its own slug, with a document that has a chunk for each text."""
    slug = f"kb-{uuid.uuid4().hex[:12]}"
    knowledge_base = KnowledgeBase.objects.create(owner=owner, slug=slug, name=slug, embedder=embedder)
    if texts:
        add_document(knowledge_base, texts)
    return knowledge_base


def add_document(knowledge_base: KnowledgeBase, texts: Sequence[str]) -> list[int]:
    """The numbers of the chunks."""
    whole = "".join(texts)
    document = Document.objects.create(
        knowledge_base=knowledge_base,
        title="Notes",
        sha256=sha256(whole.encode()).hexdigest(),
        bytes=len(whole.encode()),
        status=Document.Status.READY,
        text=whole,
    )
    chunks, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        chunks.append(Chunk(document=document, position=position, text=text, start=start, end=end))
        chunks[-1].knowledge_base = knowledge_base
        start = end
    return [chunk.pk for chunk in Chunk.objects.bulk_create(chunks)]


def chunk_ids(knowledge_base: KnowledgeBase) -> list[int]:
    return list(Chunk.objects.filter(knowledge_base=knowledge_base).order_by("pk").values_list("pk", flat=True))


def windows_by(knowledge_base: KnowledgeBase) -> dict[str, int]:
    """How many windows each embedder has."""
    counted: dict[str, int] = {}
    for embedder in Window.objects.filter(knowledge_base=knowledge_base).values_list("embedder", flat=True):
        counted[embedder] = counted.get(embedder, 0) + 1
    return counted
