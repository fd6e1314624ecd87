"""The queue in the admin: which jobs wait, run and fail, without what they were given."""

from __future__ import annotations

from django.contrib import admin
from procrastinate.contrib.django.models import ProcrastinateJob

from klerai.admin_site import ReadOnlyAdmin

admin.site.unregister(ProcrastinateJob)


@admin.register(ProcrastinateJob)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("id", "task_name", "queue_name", "status", "attempts", "scheduled_at")
    list_filter = ("status", "queue_name", "task_name")
    search_fields = ("=id", "task_name")
    fields = list_display
    ordering = ("-id",)
