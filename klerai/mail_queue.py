"""Mail waits in the database: it is written with what caused it and delivered by the worker."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import EmailMessage
from django.db import transaction
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from klerai.mail import as_json, deliver, from_json
from klerai.models import OutgoingMail

# 4, 16, 64 … seconds: a mail server may be away for about six hours.
RETRY = RetryStrategy(max_attempts=8, exponential_wait=4, retry_exceptions=[OSError])


class QueuedBackend(BaseEmailBackend):
    """Django's mail face. What is sent in a transaction that rolls back is never delivered."""

    @transaction.atomic
    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            mail = OutgoingMail.objects.create(message=as_json(message))
            deliver_mail.defer(mail_id=str(mail.pk))
        return len(email_messages)


@app.task(name="deliver_mail", queue="mail", retry=RETRY)
def deliver_mail(mail_id: str) -> None:
    """At least once. The job names the row only, since jobs and their arguments are logged."""
    mail = OutgoingMail.objects.filter(pk=UUID(mail_id)).first()
    if mail is None:
        return
    deliver(from_json(mail.message), settings.DELIVERY, id=mail.pk)
    mail.delete()
