"""Filling a knowledge base from files of this machine, here and now, without a worker."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from klerai.database import in_database
from retrieval.errors import FileTooLarge
from retrieval.ingestion import corpus
from retrieval.ingestion.accept import Accepted, Outcome, accept
from retrieval.ingestion.folders import Found
from retrieval.ingestion.originals import MOST_BYTES, PIECE_BYTES
from retrieval.ingestion.pipeline import process
from retrieval.ingestion.titles import source_of
from retrieval.models import Chunk, Document, KnowledgeBase

FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Filled:
    """What became of a file or a row: an Outcome's value or `failed`, and then why. `at` is how far its file is read.

    A row of a corpus has a `place` in it.
    """

    name: str
    outcome: str
    passages: int = 0
    reason: str = ""
    place: str = ""
    at: int = 0


async def fill(knowledge_base: KnowledgeBase, found: Found) -> AsyncIterator[Filled]:
    """Take in one file: a corpus row by row, anything else as a document. What cannot be read is said, not raised."""
    try:
        with found.path.open("rb") as file:
            if found.path.suffix.lower() == ".jsonl":
                async for filled in _fill_from_corpus(knowledge_base, found, file):
                    yield filled
            else:
                yield await _fill_from_file(knowledge_base, found, file)
    except OSError as error:
        yield Filled(found.name, FAILED, reason=f"It cannot be opened: {error.strerror}.")


async def _fill_from_file(knowledge_base: KnowledgeBase, found: Found, file: BufferedReader) -> Filled:
    size = found.path.stat().st_size
    if size > MOST_BYTES:
        return Filled(found.name, FAILED, reason=str(FileTooLarge(found.name, MOST_BYTES)), at=size)
    if await in_database(_is_there, knowledge_base, found.name, file):
        return Filled(found.name, Outcome.UNCHANGED, at=size)
    file.seek(0)
    accepted = await in_database(accept, knowledge_base, found.name, _pieces(file), is_queued=False)
    await process(accepted.document.pk)
    return await in_database(_filled, found, accepted, size)


async def _fill_from_corpus(knowledge_base: KnowledgeBase, found: Found, file: BinaryIO) -> AsyncIterator[Filled]:
    refused: list[corpus.Refused] = []

    def rows() -> Iterator[corpus.Row]:
        for row in corpus.rows_of(file):
            if isinstance(row, corpus.Row):
                yield row
            else:
                refused.append(row)

    for batch in corpus.batches_of(rows()):
        at = file.tell()
        for row, outcome, passages in await corpus.store(knowledge_base, batch):
            yield Filled(found.name, outcome, passages, place=row.external_id, at=at)
    for each in refused:
        yield Filled(found.name, FAILED, reason=each.reason, place=f"line {each.line}")


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(PIECE_BYTES), b"")


def _is_there(knowledge_base: KnowledgeBase, name: str, file: BufferedReader) -> bool:
    """Found out before a byte is stored, so that a folder that has not changed costs its reading only."""
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    ready = Document.objects.filter(knowledge_base=knowledge_base, sha256=sha256, status=Document.Status.READY)
    return ready.filter(source=source_of(name), external_id="").exists()


def _filled(found: Found, accepted: Accepted, size: int) -> Filled:
    document = Document.objects.defer("text").get(pk=accepted.document.pk)
    if document.status == Document.Status.FAILED:
        return Filled(found.name, FAILED, reason=document.error, at=size)
    passages = Chunk.objects.filter(document=document).count()
    outcome = accepted.outcome if accepted.outcome is not Outcome.UNCHANGED else Outcome.ADDED
    return Filled(found.name, outcome, passages, reason=document.note, at=size)


def size_of(path: Path) -> int:
    """0 for what cannot be looked at."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
