"""In the admin: the queue, without what its jobs were given, and the pages in the operator's own words."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from procrastinate.contrib.django.models import ProcrastinateJob

from klerai.admin_site import ReadOnlyAdmin
from klerai.models import LegalPage

admin.site.unregister(ProcrastinateJob)


@admin.register(ProcrastinateJob)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("id", "task_name", "queue_name", "status", "attempts", "scheduled_at")
    list_filter = ("status", "queue_name", "task_name")
    search_fields = ("=id", "task_name")
    fields = list_display
    ordering = ("-id",)


@admin.register(LegalPage)
class LegalPageAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # takes no argument at run time
    """There are four, always: they are written anew and never added or deleted."""

    list_display = ("slug", "is_draft", "updated_at")
    fields = ("slug", "text", "updated_at")
    readonly_fields = ("slug", "updated_at")

    @admin.display(boolean=True, description="shows the draft")
    def is_draft(self, page: LegalPage) -> bool:
        return not page.text

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
