"""Runs and models for operators. What people wrote is not shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from chat.mcp.server_form import McpServerForm
from chat.models import Conversation, McpServer, ModelCard, ModelPrice, Run


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows to look at: the product writes them, nobody else."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ["run_id", "person", "mode", "state", "model", "credits", "created_at", "ended_at"]
    list_filter = ["state", "mode", "model"]
    list_select_related = ["person"]
    search_fields = ["run_id", "id", "person__email"]
    date_hierarchy = "created_at"
    fields = [
        "run_id",
        "id",
        "person",
        "conversation",
        "number",
        "mode",
        "state",
        "model",
        "attempt",
        "last_seq",
        "lease_until",
        "stop_requested_at",
        "error",
        "receipt",
        "created_at",
        "ended_at",
    ]
    ordering = ["-created_at"]

    @admin.display(description="credits")
    def credits(self, run: Run) -> int | None:
        return None if run.receipt is None else int(run.receipt["credits"])


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    """Without titles: they begin with what the person wrote."""

    list_display = ["id", "person", "mode", "query_counter", "created_at", "updated_at"]
    list_select_related = ["person"]
    search_fields = ["id", "person__email"]
    fields = ["id", "person", "mode", "query_counter", "is_pinned", "is_archived", "created_at", "updated_at"]


class PriceInline(admin.TabularInline):  # type: ignore[type-arg]
    model = ModelPrice
    extra = 0


@admin.register(ModelCard)
class ModelCardAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "strategy", "model", "thinking", "context_tokens", "rank", "stands_in_anywhere"]
    list_filter = ["strategy"]
    search_fields = ["name", "model"]
    inlines = [PriceInline]


@admin.register(McpServer)
class McpServerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Servers over HTTP. Programs of this machine come from the operator's file alone; headers are never shown."""

    form = McpServerForm
    list_display = ["name", "url", "is_enabled", "has_headers", "created_at"]
    search_fields = ["name", "url"]
    fields = ["name", "url", "headers", "drops_headers", "is_enabled"]

    @admin.display(boolean=True, description="has headers")
    def has_headers(self, server: McpServer) -> bool:
        return bool(server.headers_cipher)
