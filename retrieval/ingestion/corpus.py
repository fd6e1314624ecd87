"""A corpus: JSON Lines of `{"id", "title", "text"}`, each a document, many to a transaction."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

import structlog
from django.db import transaction
from django.utils import timezone

from klerai.database import in_database
from klerai.failpoints import failpoint
from retrieval.errors import EmbedderFailed, UnreadableFile
from retrieval.ingestion.accept import Outcome
from retrieval.ingestion.chunking import BETWEEN_TITLES, SECTION_LENGTH, TITLE_LENGTH, Span, chunk
from retrieval.ingestion.content import storable
from retrieval.ingestion.embedding import embedded
from retrieval.ingestion.formats.markdown import read_markdown
from retrieval.ingestion.kinds import MOST_TEXT
from retrieval.ingestion.passages import READY_FIELDS, Passages, Vectors, show_passages
from retrieval.ingestion.titles import title_from
from retrieval.models import Document, KnowledgeBase
from retrieval.signals import document_ready

MOST_IN_A_BATCH, CHARACTERS_IN_A_BATCH = 256, 1_000_000
LONGEST_ID = 300
logger = structlog.get_logger(__name__)
_LONGEST_LINE = 6 * MOST_TEXT  # bytes: every character may be written as \\uXXXX


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a corpus."""

    external_id: str
    title: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(f"{self.title}\0{self.text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no row, and why."""

    line: int
    reason: str


def rows_of(file: BinaryIO) -> Iterator[Row | Refused]:
    """The lines of a file; empty ones are passed over."""
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
        if not line.strip():
            continue
        try:
            yield _row(line)
        except UnreadableFile as error:
            yield Refused(number, str(error))


def batches_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that are stored together. No id is twice in a batch, so that the later of two wins."""
    batch, ids, characters = list[Row](), set[str](), 0
    for row in rows:
        is_full = len(batch) >= MOST_IN_A_BATCH or characters + len(row.text) > CHARACTERS_IN_A_BATCH
        if batch and (is_full or row.external_id in ids):
            yield batch
            batch, ids, characters = [], set(), 0
        batch.append(row)
        ids.add(row.external_id)
        characters += len(row.text)
    if batch:
        yield batch


async def store(knowledge_base: KnowledgeBase, batch: list[Row]) -> list[tuple[Row, Outcome, int]]:
    """What became of each row, and how many passages it has if it is new.

    What is known with the same title and text is left alone.
    """
    known = await in_database(_known, knowledge_base, batch)
    fresh = [row for row in batch if known.get(row.external_id) != row.sha256]
    cut = await asyncio.to_thread(lambda: [_cut(row) for row in fresh])
    if fresh:
        texts = [row.text[span.start : span.end] for row, spans in zip(fresh, cut, strict=True) for span in spans]
        try:
            vectors, lacks_vectors = await embedded(knowledge_base, texts), False
        except EmbedderFailed as error:
            logger.warning("corpus_not_embedded", reason=str(error))
            vectors, lacks_vectors = None, True
        await in_database(_show, knowledge_base, fresh, cut, vectors, lacks_vectors)
    failpoint("corpus_batch_stored")
    passages = {row.external_id: len(spans) for row, spans in zip(fresh, cut, strict=True)}
    return [(row, _outcome(row, known), passages.get(row.external_id, 0)) for row in batch]


def _row(line: bytes) -> Row:
    if len(line) >= _LONGEST_LINE:
        raise UnreadableFile("The line is too long.")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("This is not JSON.") from error
    if not isinstance(found, dict):
        raise UnreadableFile("This is not a JSON object.")
    external_id, title, text = found.get("id"), found.get("title") or "", found.get("text")
    if isinstance(external_id, int):
        external_id = str(external_id)
    if not isinstance(external_id, str) or not 0 < len(external_id) <= LONGEST_ID:
        raise UnreadableFile(f"“id” must be a text of 1 to {LONGEST_ID} characters.")
    if not isinstance(title, str) or not isinstance(text, str):
        raise UnreadableFile("“title” and “text” must be texts.")
    if len(text) > MOST_TEXT:
        raise UnreadableFile(f"“text” has more than {MOST_TEXT // 1_000_000} million characters.")
    return Row(storable(external_id), storable(title), storable(text if text.strip() else title))


def _cut(row: Row) -> list[Span]:
    """Passages of a text that does not begin with its title stand under it."""
    content = read_markdown(row.text)
    spans = list(chunk(content))
    title = title_from(row.title, longest=TITLE_LENGTH)
    if not row.title.strip() or row.text.lstrip("# \n").startswith(row.title.strip()):
        return spans
    return [replace(span, section=_under(title, span.section)) for span in spans]


def _under(title: str, section: str) -> str:
    return f"{title}{BETWEEN_TITLES}{section}"[:SECTION_LENGTH] if section else title


def _known(knowledge_base: KnowledgeBase, batch: list[Row]) -> dict[str, str]:
    """The hashes of what is there."""
    ids = [row.external_id for row in batch]
    there = Document.objects.filter(knowledge_base=knowledge_base, external_id__in=ids, status=Document.Status.READY)
    return dict(there.values_list("external_id", "sha256"))


def _outcome(row: Row, known: Mapping[str, str]) -> Outcome:
    before = known.get(row.external_id)
    if before is None:
        return Outcome.ADDED
    return Outcome.UNCHANGED if before == row.sha256 else Outcome.REPLACED


@transaction.atomic
def _show(
    knowledge_base: KnowledgeBase,
    rows: list[Row],
    cut: list[list[Span]],
    vectors: Vectors | None,
    lacks_vectors: bool,
) -> None:
    KnowledgeBase.objects.select_for_update(no_key=True).get(pk=knowledge_base.pk)
    known = _locked(knowledge_base, rows)
    found = []
    for row, spans in zip(rows, cut, strict=True):
        document = known.get(row.external_id) or Document(knowledge_base=knowledge_base, external_id=row.external_id)
        document.title = title_from(row.title if row.title.strip() else row.external_id)
        document.sha256, document.bytes, document.updated_at = row.sha256, len(row.text.encode()), timezone.now()
        found.append(Passages(document, row.text, "text/markdown", spans, lacks_vectors))
        found[-1].mark_ready()
    documents = [each.document for each in found]
    Document.objects.bulk_update(known.values(), ["title", "sha256", "bytes", *READY_FIELDS])
    Document.objects.bulk_create([document for document in documents if document.external_id not in known])
    show_passages(knowledge_base, found, vectors)
    for document in documents:
        transaction.on_commit(partial(document_ready.send, sender=Document, document_id=document.pk))


def _locked(knowledge_base: KnowledgeBase, rows: list[Row]) -> dict[str, Document]:
    """The documents that are there, by their ids in the corpus."""
    ids = [row.external_id for row in rows]
    there = Document.objects.filter(knowledge_base=knowledge_base, external_id__in=ids).defer("text").order_by("pk")
    return {document.external_id: document for document in there.select_for_update(of=("self",))}
