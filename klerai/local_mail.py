"""The mail of local mode, readable in the browser of the machine that wrote it."""

from __future__ import annotations

import email
import email.policy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from heapq import nlargest
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from klerai.accounts.addresses import is_loopback
from klerai.mail import Folder

SHOWN = 50
LARGEST_BYTES = 256_000


@dataclass(frozen=True, slots=True)
class ReadMail:
    written_at: datetime
    to: str
    subject: str
    text: str


@never_cache
@require_safe
def local_mail(request: HttpRequest) -> HttpResponse:
    """Newest first, as text. Exists in local mode only, and for programs on this machine only."""
    if not (settings.LOCAL_MODE and is_loopback(request) and isinstance(settings.DELIVERY, Folder)):
        raise Http404
    return render(request, "local/mail.html", {"mails": _newest(settings.DELIVERY.path)})


def _newest(folder: Path) -> list[ReadMail]:
    """File names begin with the time, so the order needs no reading."""
    return [_read(file) for file in nlargest(SHOWN, folder.glob("*.eml"))]


def _read(file: Path) -> ReadMail:
    with file.open("rb") as source:
        message = email.message_from_bytes(source.read(LARGEST_BYTES), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    body = message.get_body(preferencelist=("plain",))
    return ReadMail(
        written_at=datetime.fromtimestamp(file.stat().st_mtime, UTC),
        to=str(message["To"]),
        subject=str(message["Subject"]),
        text=str(body.get_content()) if body else "",
    )


urlpatterns = [path("", local_mail, name="local_mail")]
