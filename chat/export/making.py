"""Makes an export, and tells its person when it is there."""

from __future__ import annotations

from urllib.parse import urljoin
from uuid import UUID

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from chat.export.archive import Archive, Pieces
from chat.export.belongings import README, count_parts, parts_of
from klerai.accounts import exports
from klerai.accounts.errors import ExportGone, ExportTooLarge
from klerai.accounts.models import Export, Person

MOST_BYTES = 20 * 2**30
GAVE_UP = "Something went wrong on our side, several times. Ask again; if it stays so, tell the people who run this."
TOO_LARGE = "It would be larger than {most:,} GB. Delete some documents, or ask the people who run this for a copy."
logger = structlog.get_logger(__name__)


def make_export(export_id: UUID) -> None:
    """May be done again at any time: an attempt begins from nothing, and the one before it can no longer write."""
    try:
        owner = Person.objects.get(export=export_id)
        export = exports.begin_export(export_id, total=count_parts(owner))
        try:
            _write(export, owner)
        except ExportTooLarge as error:
            exports.fail_export(export, TOO_LARGE.format(most=error.most_bytes // 2**30))
            return
        with transaction.atomic():
            _tell(owner, exports.finish_export(export))
    except (ExportGone, Person.DoesNotExist):
        logger.info("export_gone", export=str(export_id))


def give_up(export_id: UUID) -> None:
    """For one that failed again and again."""
    export = Export.objects.filter(pk=export_id, state__in=Export.UNDER_WAY).first()
    if export is not None:
        exports.fail_export(export, GAVE_UP)


def _write(export: Export, person: Person) -> None:
    now = timezone.now()

    def keep(position: int, data: bytes) -> None:
        exports.add_piece(export, position, data)

    pieces = Pieces(keep, piece_bytes=exports.PIECE_BYTES, most_bytes=MOST_BYTES)
    with Archive(pieces, made_at=now) as archive:
        archive.add("README.txt", [README.format(email=person.email, moment=now)])
        for done, part in enumerate(parts_of(person), start=1):
            part.write(archive)
            exports.note_progress(export, min(done, export.total))


def _tell(person: Person, export: Export) -> None:
    assert export.expires_at is not None
    context = {
        "link": urljoin(settings.BASE_URL, f"{reverse('settings')}#export"),
        "until": export.expires_at.astimezone(person.zone),
    }
    body = render_to_string("settings/export_mail.txt", context)
    EmailMessage(subject="Your KlerAI export is ready", body=body, to=[person.email]).send()
