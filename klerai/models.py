"""Rows that belong to the product as a whole."""

from __future__ import annotations

import uuid

from django.db import models


class OutgoingMail(models.Model):
    """A message not delivered yet. It goes with its delivery, so that no link in it outlives its use here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    message = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"mail {self.id}"
