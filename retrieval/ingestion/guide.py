"""The user guide: pages of ours, as a shared knowledge base that answers can cite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.conf import settings
from django.db import connections
from django.db.models import QuerySet
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from klerai.database import in_database
from retrieval.ingestion import corpus
from retrieval.ingestion.accept import delete_document
from retrieval.ingestion.queueing import QUEUE
from retrieval.models import Document, KnowledgeBase

SLUG, NAME = "user-guide", "KlerAI user guide"
FOLDER = Path(__file__).resolve().parent.parent / "guide"
_OURS = "guide/"
_LOCAL = ("wordllama", "none")


def load_guide(folder: Path = FOLDER) -> None:
    """Have the guide as it is in the files: at once, or by the worker where an embedder elsewhere has to be waited for.

    Costs one query when nothing has changed. Call it outside of any event loop.
    """
    found = pages(folder)
    if _is_current(found):
        return
    if settings.EMBEDDER in _LOCAL:
        asyncio.run(_store_and_let_go(found))
        return
    try:
        app.configure_task("load_user_guide", queue=QUEUE, queueing_lock="load-user-guide").defer()
    except AlreadyEnqueued:
        return


async def store_guide(found: Sequence[corpus.Row]) -> None:
    """Add new pages, replace changed ones and remove those that are gone; the others are left alone."""
    knowledge_base, gone = await in_database(_knowledge_base, found)
    for document in gone:
        await in_database(delete_document, document)
    for batch in corpus.batches_of(found):
        await corpus.store(knowledge_base, batch)


def pages(folder: Path = FOLDER) -> list[corpus.Row]:
    """The last page first, since lists of documents show what came last at their top."""
    return [_page(file) for file in sorted(folder.glob("*.md"), reverse=True)]


def _page(file: Path) -> corpus.Row:
    """`07-receipts.md` is `guide/receipts`; its first line is its title and stands in no passage."""
    title, _, text = file.read_text(encoding="utf-8").partition("\n")
    return corpus.Row(_OURS + file.stem.partition("-")[2], title.removeprefix("# "), text.strip())


def _is_current(found: Sequence[corpus.Row]) -> bool:
    there = _documents().filter(status=Document.Status.READY).values_list("external_id", "sha256")
    return dict(there) == {page.external_id: page.sha256 for page in found}


def _documents() -> QuerySet[Document]:
    return Document.objects.filter(
        knowledge_base__owner=None, knowledge_base__slug=SLUG, external_id__startswith=_OURS
    ).defer("text")


def _knowledge_base(found: Sequence[corpus.Row]) -> tuple[KnowledgeBase, list[Document]]:
    knowledge_base, _ = KnowledgeBase.objects.get_or_create(owner=None, slug=SLUG, defaults={"name": NAME})
    known = {page.external_id for page in found}
    return knowledge_base, [document for document in _documents() if document.external_id not in known]


async def _store_and_let_go(found: Sequence[corpus.Row]) -> None:
    """In one thread, whose connection goes back to the pool: the process has other work to do after this."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="guide"))
    try:
        await store_guide(found)
    finally:
        await in_database(connections.close_all)
