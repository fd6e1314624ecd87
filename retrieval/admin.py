"""Knowledge for operators: how much, how far, what failed. No text, and of what is somebody’s own no titles."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from klerai.admin_site import ReadOnlyAdmin
from retrieval.models import Chunk, Document, KnowledgeBase

_NAME_IS_THEIRS = "(named by its owner)"


def _chunks(**of: OuterRef) -> Coalesce:
    """How many there are, counted apart so that no join multiplies them."""
    rows = Chunk.objects.filter(**of).order_by().values(*of).annotate(count=Count("pk"))
    return Coalesce(Subquery(rows.values("count")), 0)


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "shared_name", "embedder", "ready", "in_progress", "failed", "chunks", "created_at")
    list_filter = (("owner", admin.EmptyFieldListFilter), "embedder")
    list_select_related = ("owner",)
    search_fields = ("id", "owner__email")
    fields = ("id", "owner", "shared_name", "embedder", "ready", "in_progress", "failed", "chunks", "created_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeBase]:
        waiting = Q(documents__status__in=[Document.Status.QUEUED, Document.Status.PROCESSING])
        rows: QuerySet[KnowledgeBase] = super().get_queryset(request)
        return rows.annotate(
            ready_count=Count("documents", filter=Q(documents__status=Document.Status.READY)),
            waiting_count=Count("documents", filter=waiting),
            failed_count=Count("documents", filter=Q(documents__status=Document.Status.FAILED)),
            chunk_count=_chunks(knowledge_base=OuterRef("pk")),
        )

    @admin.display(description="name")
    def shared_name(self, row: KnowledgeBase) -> str:
        return f"{row.name} ({row.slug})" if row.owner_id is None else _NAME_IS_THEIRS

    @admin.display(ordering="ready_count")
    def ready(self, row: KnowledgeBase) -> int:
        return int(getattr(row, "ready_count", 0))

    @admin.display(ordering="waiting_count")
    def in_progress(self, row: KnowledgeBase) -> int:
        return int(getattr(row, "waiting_count", 0))

    @admin.display(ordering="failed_count")
    def failed(self, row: KnowledgeBase) -> int:
        return int(getattr(row, "failed_count", 0))

    @admin.display(description="passages", ordering="chunk_count")
    def chunks(self, row: KnowledgeBase) -> int:
        return int(getattr(row, "chunk_count", 0))


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "status", "progress", "error", "media_type", "bytes", "chunks", "created_at")
    list_filter = ("status", "media_type", ("knowledge_base__owner", admin.EmptyFieldListFilter))
    list_select_related = ("knowledge_base__owner",)
    search_fields = ("id", "knowledge_base__id", "knowledge_base__owner__email")
    fields = (
        *("id", "owner", "shared_title", "knowledge_base_id", "external_id"),
        *("status", "progress", "error", "media_type", "bytes", "sha256", "chunks", "created_at", "updated_at"),
    )
    readonly_fields = fields
    date_hierarchy = "created_at"
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        rows: QuerySet[Document] = super().get_queryset(request)
        return rows.defer("text").annotate(chunk_count=_chunks(document=OuterRef("pk")))

    @admin.display(ordering="knowledge_base__owner__email")
    def owner(self, row: Document) -> str:
        owner = row.knowledge_base.owner
        return owner.email if owner is not None else "everyone"

    @admin.display(description="title")
    def shared_title(self, row: Document) -> str:
        return row.title if row.knowledge_base.owner_id is None else _NAME_IS_THEIRS

    @admin.display(description="passages", ordering="chunk_count")
    def chunks(self, row: Document) -> int:
        return int(getattr(row, "chunk_count", 0))
