"""The row in which the test checkout keeps its objects."""

from __future__ import annotations

from typing import Any

from django.db import models


class LocalObject(models.Model):
    """An object of the test checkout, of the form that Stripe's have. Exists in local mode only."""

    id = models.CharField(primary_key=True, max_length=100)
    kind = models.CharField(max_length=40)
    customer_id = models.CharField(max_length=100, db_index=True)
    content: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "billing"

    def __str__(self) -> str:
        return self.id
