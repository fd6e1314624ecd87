"""A person is shut out and let in again: every door asks the row, so it holds from the next request on."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal

from klerai.accounts.models import Person

person_suspended = Signal()  # person: whoever works for them stops


@transaction.atomic
def suspend(people: QuerySet[Person]) -> list[Person]:
    """Those who were not suspended before. Their keys and sessions are refused, and what runs for them stops."""
    suspended = list(people.filter(is_active=True).select_for_update())
    for person in suspended:
        Person.objects.filter(pk=person.pk).update(is_active=False)
        person_suspended.send(Person, person=person)
    return suspended


@transaction.atomic
def reinstate(people: QuerySet[Person]) -> list[Person]:
    """Those who were suspended; their keys and sessions are good again."""
    suspended = list(people.filter(is_active=False).select_for_update())
    Person.objects.filter(pk__in=[person.pk for person in suspended]).update(is_active=True)
    return suspended
