"""Knowledge bases for tests of searching: documents of given chunks, written as ingestion writes them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from asgiref.sync import async_to_sync
from django.db import transaction

from klerai.accounts.models import Person
from retrieval.embedders.base import Embedder
from retrieval.embedders.wordllama import NAME, WordLlama
from retrieval.keyword_index import forget_document, index_chunks
from retrieval.models import Chunk, Document, KnowledgeBase, Window


def make_base(owner: Person | None, *, embedder: str = NAME, slug: str = "") -> KnowledgeBase:
    slug = slug or f"kb-{uuid.uuid4().hex[:12]}"
    return KnowledgeBase.objects.create(owner=owner, slug=slug, name=slug, embedder=embedder)


def add_document(
    base: KnowledgeBase, *texts: str, external_id: str = "", title: str = "A document", by: Embedder | None = None
) -> Document:
    """A document of one chunk a text. Without `by` its chunks have no vectors."""
    vectors = async_to_sync(by.batch_embed)(texts) if by is not None else []
    with transaction.atomic():
        document = Document.objects.create(
            knowledge_base=base,
            external_id=external_id,
            title=title,
            sha256="",
            bytes=0,
            status=Document.Status.READY,
            text="\n".join(texts),
        )
        chunks = Chunk.objects.bulk_create(_chunks(document, texts))
        Window.objects.bulk_create(
            Window(knowledge_base=base, chunk=chunk, embedder=by.name, position=0, vector=vector)
            for chunk, vector in zip(chunks, vectors, strict=bool(vectors))
            if by is not None
        )
        index_chunks(base, chunks)
    return document


def add_embedded(base: KnowledgeBase, *texts: str, external_id: str = "", title: str = "A document") -> Document:
    """With WordLlama's vectors."""
    return add_document(base, *texts, external_id=external_id, title=title, by=WordLlama())


def replace_document(document: Document, *texts: str) -> None:
    with transaction.atomic():
        forget_document(document.pk)
        document.chunks.all().delete()
        index_chunks(document.knowledge_base, Chunk.objects.bulk_create(_chunks(document, texts)))


def delete_document(document: Document) -> None:
    with transaction.atomic():
        forget_document(document.pk)
        document.delete()


def _chunks(document: Document, texts: Sequence[str]) -> list[Chunk]:
    chunks, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        chunks.append(
            Chunk(
                knowledge_base=document.knowledge_base,
                document=document,
                position=position,
                text=text,
                start=start,
                end=end,
            )
        )
        start = end + 1
    return chunks
