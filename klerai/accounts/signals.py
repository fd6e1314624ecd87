"""Keep `Person.email_verified_at` in step with allauth's addresses, whoever changes which."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from django.db.models import Exists, OuterRef
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils import timezone

from klerai.accounts.models import Person


@receiver([post_save, post_delete], sender=EmailAddress)
def follow_address(instance: EmailAddress, **_: Any) -> None:
    _note_verification(instance.user_id)


@receiver(post_save, sender=Person)
def follow_person(instance: Person, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    if update_fields is None or update_fields & {"email", "email_verified_at"}:
        _note_verification(instance.pk)


def _note_verification(person_id: UUID) -> None:
    own_address = EmailAddress.objects.filter(user=OuterRef("pk"), email=OuterRef("email"), verified=True)
    people = Person.objects.filter(pk=person_id)
    people.filter(Exists(own_address), email_verified_at=None).update(email_verified_at=timezone.now())
    people.exclude(Exists(own_address)).exclude(email_verified_at=None).update(email_verified_at=None)
