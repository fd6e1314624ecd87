"""Exports are asked for, filled piece by piece, read by their owner, and forgotten."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from klerai.accounts.errors import ExportGone, ExportUnderWay
from klerai.accounts.models import Export, ExportPiece, Person

KEPT = timedelta(days=7)
PIECE_BYTES = 2**20


@transaction.atomic
def ask_for_export(person: Person) -> Export:
    """A new export in the place of the one before. Raises ExportUnderWay while one is being made."""
    Person.objects.select_for_update(no_key=True).get(pk=person.pk)
    before = export_of(person)
    if before is not None and before.is_under_way:
        raise ExportUnderWay
    if before is not None:
        _forget(before)
    return Export.objects.create(person=person)


def export_of(person: Person) -> Export | None:
    return Export.objects.filter(person=person).first()


def ready_export(person: Person, export_id: UUID) -> Export | None:
    """The person's export under that id, if it can be downloaded now."""
    ready = Export.objects.filter(person=person, pk=export_id, state=Export.State.READY)
    return ready.filter(expires_at__gt=timezone.now()).first()


def export_piece(export_id: UUID, position: int) -> bytes | None:
    """One megabyte, counted from 0; None behind the last."""
    found = ExportPiece.objects.filter(export=export_id, position=position).values_list("data", flat=True).first()
    return None if found is None else bytes(found)


@transaction.atomic
def begin_export(export_id: UUID, *, total: int) -> Export:
    """Start from nothing, also after an attempt that broke off. Raises ExportGone when there is nothing to make."""
    export = Export.objects.select_for_update().select_related("person").filter(pk=export_id).first()
    if export is None or not export.is_under_way:
        raise ExportGone
    ExportPiece.objects.filter(export=export)._raw_delete(using="default")
    export.state, export.attempt = Export.State.MAKING, export.attempt + 1
    export.done, export.total, export.bytes = 0, total, 0
    export.save()
    return export


@transaction.atomic
def add_piece(export: Export, position: int, data: bytes) -> None:
    """Raises ExportGone when the person has left, or somebody else makes the export by now."""
    held = _held(export)
    ExportPiece.objects.create(export=held, position=position, data=data)
    held.bytes += len(data)
    held.save(update_fields=["bytes"])


def note_progress(export: Export, done: int) -> None:
    """Raises ExportGone."""
    if not Export.objects.filter(pk=export.pk, attempt=export.attempt).update(done=done):
        raise ExportGone


@transaction.atomic
def finish_export(export: Export) -> Export:
    """From here on it can be downloaded, for a week. Raises ExportGone."""
    held = _held(export)
    held.state, held.expires_at, held.done = Export.State.READY, timezone.now() + KEPT, held.total
    held.save(update_fields=["state", "expires_at", "done"])
    return held


@transaction.atomic
def fail_export(export: Export, error: str) -> None:
    """Say why, and keep nothing of the file. Raises ExportGone."""
    held = _held(export)
    ExportPiece.objects.filter(export=held)._raw_delete(using="default")
    held.state, held.error, held.bytes = Export.State.FAILED, error[:300], 0
    held.save(update_fields=["state", "error", "bytes"])


def forget_expired() -> int:
    """How many there were."""
    expired = list(Export.objects.filter(expires_at__lte=timezone.now()))
    for export in expired:
        _forget(export)
    return len(expired)


def _held(export: Export) -> Export:
    held = Export.objects.select_for_update().filter(pk=export.pk, attempt=export.attempt).first()
    if held is None:
        raise ExportGone
    return held


@transaction.atomic
def _forget(export: Export) -> None:
    ExportPiece.objects.filter(export=export)._raw_delete(using="default")
    export.delete()
