"""Another e-mail for an account: asked for, confirmed by its link, told to the old one.

allauth would keep the new address among the account's own from the start, where it already signs
in, receives links for new passwords and keeps its true owner from signing up. Here it is nobody's
until the link was followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.core import signing
from django.db import transaction

from klerai.accounts.models import EmailChange, Person

LINK_WORKS_FOR = timedelta(days=3)
_SALT = "klerai.accounts.email_change"


@dataclass(frozen=True, slots=True)
class Changed:
    old_email: str
    new_email: str


@dataclass(frozen=True, slots=True)
class LinkUnknown:
    """Used, replaced by a newer one, given up, or of an address that somebody else has by now."""


@transaction.atomic
def ask_for(person: Person, email: str, *, now: datetime) -> EmailChange:
    """The one change a person has in mind; links of an earlier one stop working."""
    owner = Person.objects.select_for_update().get(pk=person.pk)
    give_up(owner)
    return EmailChange.objects.create(person=owner, email=email.strip().lower(), asked_at=now)


def pending_change(person: Person) -> EmailChange | None:
    return EmailChange.objects.filter(person=person).first()


def give_up(person: Person) -> bool:
    return bool(EmailChange.objects.filter(person=person).delete()[0])


def is_taken(change: EmailChange) -> bool:
    """Whether somebody else has the address, confirmed or not."""
    people = Person.objects.filter(email__iexact=change.email).exclude(pk=change.person_id)
    addresses = EmailAddress.objects.filter(email__iexact=change.email).exclude(user=change.person_id)
    return people.exists() or addresses.exists()


def link_key(change: EmailChange) -> str:
    return signing.dumps(str(change.pk), salt=_SALT)


def change_behind(person: Person, key: str) -> EmailChange | None:
    """Only for the person who asked: whoever else reads that mailbox cannot take the account with it."""
    try:
        change_id = signing.loads(key, salt=_SALT, max_age=LINK_WORKS_FOR)
    except signing.BadSignature:
        return None
    return EmailChange.objects.filter(pk=change_id, person=person).first()


@transaction.atomic
def confirm(person: Person, key: str) -> Changed | LinkUnknown:
    """From here on the new address is the account's only one. The account itself stays: id, keys, credits, sessions."""
    owner = Person.objects.select_for_update().get(pk=person.pk)
    change = change_behind(owner, key)
    if change is None:
        return LinkUnknown()
    change.delete()
    if is_taken(change):
        return LinkUnknown()
    changed = Changed(owner.email, change.email)
    EmailAddress.objects.filter(user=owner).delete()
    EmailAddress.objects.create(user=owner, email=changed.new_email, verified=True, primary=True)
    owner.email = changed.new_email
    owner.save(update_fields=["email"])
    return changed
