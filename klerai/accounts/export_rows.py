"""The rows of the export a person asked for: how far it is, and its file a megabyte at a time."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class Export(models.Model):
    """Everything of a person as one ZIP. There is one at a time; asking again replaces the one before.

    `attempt` is the fence: only who holds it may write. `done` counts parts, of `total`.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        MAKING = "making"
        READY = "ready"
        FAILED = "failed"

    UNDER_WAY = (State.WAITING, State.MAKING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="export")
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        app_label = "accounts"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=~models.Q(state="ready") | models.Q(expires_at__isnull=False), name="a_ready_export_expires"
            ),
        ]

    def __str__(self) -> str:
        return f"export {self.id}"

    @property
    def is_under_way(self) -> bool:
        return self.state in self.UNDER_WAY


class ExportPiece(models.Model):
    """A megabyte of an export, so that the file never stands whole in memory."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="pieces")
    position = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        app_label = "accounts"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["export", "position"], name="export_piece_is_unique"),
        ]
