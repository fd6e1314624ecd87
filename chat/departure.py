"""A person leaves: what goes with them, and its going, in one transaction and for good."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import structlog
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction

from billing import closing, credits
from billing.credits import Balance
from chat.errors import StaffStay
from chat.models import Item, RunEvent
from chat.queries import conversations_of, runs_of
from chat.vault import vault
from klerai.accounts.models import Export, ExportPiece, Person
from klerai.mail import forget_delivered
from klerai.models import OutgoingMail
from retrieval import belongings

# A job that is being done stays: it finds nothing any more, and goes with the others of its age.
_FORGET_JOBS = """
    DELETE FROM procrastinate_jobs
    WHERE status <> 'doing' AND EXISTS (SELECT FROM jsonb_each_text(args) argument WHERE argument.value = ANY(%s))
"""
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Losses:
    """What a person loses by leaving."""

    balance: Balance
    conversations: int
    documents: int
    keys: int
    has_subscription: bool


def losses_of(person: Person) -> Losses:
    return Losses(
        credits.balance_of(person),
        conversations_of(person).count(),
        belongings.own_documents(person).count(),
        person.api_keys.filter(is_active=True).count(),
        closing.has_subscription(person),
    )


def leave(person: Person) -> None:
    """End the subscription, then delete everything of the person but the lines of the books, which name nobody.

    Raises StaffStay, and what `closing.end_subscriptions` raises; in each case nothing was deleted.
    """
    if person.is_staff:
        raise StaffStay
    closing.end_subscriptions(person)
    person_id, runs = str(person.pk), list(runs_of(person).values_list("pk", flat=True))
    _delete(person)
    vault().forget(runs)
    forget_delivered(person.email, settings.DELIVERY)
    logger.info("person_left", person=person_id)


@transaction.atomic
def _delete(person: Person) -> None:
    """Accounts are locked first, like everywhere else: a run that would begin now finds its person gone."""
    closing.close_books(person)
    exports = Export.objects.filter(person=person).values_list("pk", flat=True)
    gone = belongings.forget_person(person)
    _forget_jobs([*gone.knowledge_bases, *gone.documents, *_forget_waiting_mail(person.email), *exports, person.pk])
    for session in UserSession.objects.filter(user=person):
        session.end()
    _forget_in_the_log(person)
    RunEvent.objects.filter(run__person=person).delete()
    Item.objects.filter(run__person=person).delete()
    ExportPiece.objects.filter(export__person=person)._raw_delete(using="default")
    person.delete()


def _forget_waiting_mail(email: str) -> list[UUID]:
    waiting = OutgoingMail.objects.filter(message__to__contains=[email])
    mails = list(waiting.values_list("pk", flat=True))
    waiting.delete()
    return mails


def _forget_jobs(named: Iterable[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_JOBS, [[str(key) for key in named]])


def _forget_in_the_log(person: Person) -> None:
    """What staff did with the account stays on record, by its id alone."""
    LogEntry.objects.filter(object_id=str(person.pk)).update(object_repr=str(person.pk))
