"""Knowledge: bases, their documents, the chunks these are cut into and the vectors of those."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from pgvector.django import VectorField

from retrieval.web_rows import Keyword as Keyword
from retrieval.web_rows import KeywordLink as KeywordLink
from retrieval.web_rows import WebResult as WebResult

DEFAULT_SLUG = "default_kb"


class KnowledgeBase(models.Model):
    """Documents that are searched together. Without an owner everybody may read it and only operators write it.

    `embedder` names the one whose vectors are searched; changing over fills the new one's first.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=120)
    embedder = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["owner", "slug"], name="knowledge_base_is_unique_to_its_owner"),
            models.UniqueConstraint(fields=["slug"], condition=Q(owner=None), name="shared_knowledge_base_is_unique"),
        ]

    def __str__(self) -> str:
        return str(self.pk)  # logs and the admin say it: no name of anybody's


class Document(models.Model):
    """A file or a row of a corpus. `text` is what was read out of it; chunks are ranges of it."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        PROCESSING = "processing"
        READY = "ready"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    external_id = models.CharField(max_length=300, blank=True)
    title = models.CharField(max_length=300)
    source = models.CharField(max_length=300, blank=True)
    media_type = models.CharField(max_length=100, blank=True)
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    progress = models.PositiveSmallIntegerField(default=0)
    error = models.TextField(blank=True)
    text = models.TextField(blank=True)
    lacks_vectors = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["knowledge_base", "external_id"],
                condition=~Q(external_id=""),
                name="external_id_is_unique_in_a_knowledge_base",
            ),
            models.CheckConstraint(condition=Q(progress__lte=100), name="document_progress_is_a_percentage"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["knowledge_base", "-created_at"], name="document_newest_first"),
            models.Index(fields=["knowledge_base", "sha256"], name="document_by_content"),
            models.Index(fields=["knowledge_base", "source"], name="document_by_source"),
            models.Index(fields=["updated_at"], condition=Q(lacks_vectors=True), name="document_without_vectors"),
            models.Index(
                fields=["updated_at"], condition=Q(status__in=["queued", "processing"]), name="document_in_progress"
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def note(self) -> str:
        """What a person should know of a document that is ready; empty when there is nothing."""
        if not self.lacks_vectors:
            return ""
        return "Found by its words only for now: the embedder did not answer, and is asked again every few minutes."


class OriginalPiece(models.Model):
    """A megabyte of a document as it was uploaded, so that no file ever stands whole in memory."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="original")
    position = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["document", "position"], name="original_piece_is_unique"),
        ]


class Chunk(models.Model):
    """A passage: the characters `start` to `end` of its document's text, under the headings in `section`.

    `page` counts from 1 where the document has pages. The number is internal; nobody outside sees it.
    """

    id = models.BigAutoField(primary_key=True)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    position = models.PositiveIntegerField()
    section = models.CharField(max_length=300, blank=True)
    text = models.TextField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["document", "position"], name="chunk_is_unique"),
            models.CheckConstraint(condition=Q(end__gte=models.F("start")), name="chunk_is_a_range"),
        ]


class Window(models.Model):
    """The vector of about 150 words of a chunk, by one embedder; a chunk is as near as its nearest window."""

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    chunk = models.ForeignKey(Chunk, on_delete=models.CASCADE, related_name="windows")
    embedder = models.CharField(max_length=80)
    position = models.PositiveSmallIntegerField()
    vector = VectorField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["chunk", "embedder", "position"], name="window_is_unique"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["knowledge_base", "embedder"], name="window_of_a_knowledge_base"),
        ]


class Term(models.Model):
    """A word of a knowledge base, and how many of its chunks have it."""

    id = models.BigAutoField(primary_key=True)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+", db_index=False)
    lexeme = models.CharField(max_length=80, db_collation="C")
    chunks = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["knowledge_base", "lexeme"], name="term_is_unique"),
        ]

    def __str__(self) -> str:
        return self.lexeme


class PostingBlock(models.Model):
    """Which chunks of a block have a term, how often, and how long each is, packed as retrieval.postings has it.

    Written with the IndexedChunks it speaks of; goes by itself when its term does.
    """

    pk = models.CompositePrimaryKey("term_id", "number")
    term = models.ForeignKey(Term, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    number = models.IntegerField()
    postings = models.BinaryField()


class IndexedChunk(models.Model):
    """That a chunk can be found by keyword: its number in the keyword index, its length and its terms.

    Numbers count up from 0 in each knowledge base and are never given twice; blocks of postings go by them.
    """

    chunk = models.OneToOneField(Chunk, primary_key=True, on_delete=models.CASCADE, related_name="+")
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.IntegerField()
    length = models.PositiveIntegerField()
    term_ids = ArrayField(models.BigIntegerField())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["knowledge_base", "number"], include=["chunk"], name="indexed_chunk_number_is_unique"
            ),
        ]


class KeywordStatistics(models.Model):
    """How many chunks of a knowledge base can be found by keyword and how many terms they have together.

    Its row is what writers of the keyword index lock first.
    """

    knowledge_base = models.OneToOneField(
        KnowledgeBase, primary_key=True, on_delete=models.CASCADE, related_name="statistics"
    )
    chunks = models.PositiveIntegerField(default=0)
    total_length = models.PositiveBigIntegerField(default=0)
    next_number = models.IntegerField(default=0)


class CachedVector(models.Model):
    """What an embedder said of a text, by the text's SHA-256, so that unchanged text is never embedded again."""

    embedder = models.CharField(max_length=80)
    sha256 = models.CharField(max_length=64)
    vector = VectorField()
    used_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["embedder", "sha256"], name="cached_vector_is_unique"),
        ]


class LibrarySearch(models.Model):
    """What a search for a library's name found; the key is a hash of the name."""

    key = models.CharField(max_length=64, primary_key=True)
    libraries = models.JSONField()
    fetched_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["fetched_at"], name="library_search_by_age"),
        ]


class LibraryText(models.Model):
    """Documentation of a library on a topic: its sections and, a line each, their terms; the key is a hash of both.

    `digest` is a hash of the words, under which the vectors stand; `left_out` counts sections beyond the budget.
    """

    key = models.CharField(max_length=64, primary_key=True)
    library = models.CharField(max_length=300)
    sections = models.JSONField()
    terms = models.TextField()
    digest = models.CharField(max_length=64)
    left_out = models.PositiveIntegerField(default=0)
    fetched_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["library"], name="library_text_of_a_library"),
            models.Index(fields=["fetched_at"], name="library_text_by_age"),
        ]


class LibraryVectors(models.Model):
    """The vectors of a library text's sections by one embedder, packed in their order as little-endian float32."""

    digest = models.CharField(max_length=64)
    embedder = models.CharField(max_length=80)
    vectors = models.BinaryField()
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["digest", "embedder"], name="library_vectors_are_unique"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["made_at"], name="library_vectors_by_age"),
        ]
