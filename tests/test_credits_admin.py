"""Operators read the ledger and grant with a reason; nobody writes in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client, override_settings
from django.urls import reverse

from billing import credits
from billing.models import Account, Entry, Transaction
from klerai.accounts.models import Person
from tests.credit_people import newcomer, verified, with_packs
from tests.people import make_person, sign_in

GRANT = "/admin/billing/account/grant/"


@pytest.fixture(autouse=True)
def _staff_need_no_second_factor() -> Iterator[None]:
    with override_settings(LOCAL_MODE=True):
        yield


@pytest.fixture
def admin() -> Client:
    return sign_in(make_person("admin", is_admin=True))


def form(person: Person, **changes: Any) -> dict[str, Any]:
    return {"email": person.email, "amount": "40", "reason": "Sorry for Tuesday", "key": uuid.uuid4(), **changes}


def test_a_grant_is_in_the_ledger_and_in_the_log_with_who_and_why() -> None:
    staff, person, stranger = make_person("admin", is_admin=True), newcomer(), newcomer()
    answer = sign_in(staff).post(GRANT, form(person), follow=True)
    assert answer.status_code == 200
    assert f"Granted 40 credits to {person.email}. They now have 40." in answer.content.decode()
    row = credits.entries_of(person)[0]
    assert (row.kind, row.pack, row.reason) == ("grant", 40, "Sorry for Tuesday")
    assert Transaction.objects.get(pk=row.id).created_by == staff.id
    log = LogEntry.objects.get(object_id=str(person.id))
    assert (log.user_id, log.change_message) == (staff.id, "Granted 40 credits: Sorry for Tuesday")
    assert credits.balance_of(stranger).available == 0


def test_pressing_the_button_twice_grants_once(admin: Client) -> None:
    person = newcomer()
    once = form(person)
    admin.post(GRANT, once)
    again = admin.post(GRANT, once, follow=True)
    assert "This grant was made before. They now have 40." in again.content.decode()
    assert credits.balance_of(person).available == 40
    assert LogEntry.objects.filter(object_id=str(person.id)).count() == 1


@pytest.mark.parametrize(
    "change",
    [
        *({"amount": amount} for amount in ("", "0", "-1", "100001", "1.0", "1e308", "NaN", "١٢", str(2**63), "1 0")),
        {"reason": ""},
        {"reason": "   "},
        {"reason": "x" * 501},
        {"reason": "nul\0"},
        {"email": "nobody@example.org"},
        {"email": ""},
        {"key": "x"},
    ],
)
def test_a_grant_that_makes_no_sense_is_refused_whole(admin: Client, change: dict[str, str]) -> None:
    person = newcomer()
    answer = admin.post(GRANT, form(person, **change))
    assert answer.status_code == 400
    assert "Nothing was granted." in answer.content.decode()
    assert credits.balance_of(person).available == 0


def test_the_form_is_filled_in_for_a_person_and_looking_at_it_grants_nothing(admin: Client) -> None:
    person = newcomer()
    answer = admin.get(GRANT, {"email": person.email, "amount": "40", "reason": "x"})
    assert person.email in answer.content.decode()
    assert credits.balance_of(person).available == 0


def test_staff_grant_only_with_the_permission() -> None:
    staff, person = make_person("staff"), newcomer()
    staff.is_staff = True
    staff.save(update_fields=["is_staff"])
    assert sign_in(staff).post(GRANT, form(person)).status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="grant_credits"))
    assert sign_in(staff).post(GRANT, form(person)).status_code == 302
    assert credits.balance_of(person).available == 40


def test_people_who_are_not_staff_cannot_grant() -> None:
    person = newcomer()
    assert sign_in(verified()).post(GRANT, form(person)).status_code in (302, 403)
    assert Client().post(GRANT, form(person)).status_code in (302, 403)
    assert credits.balance_of(person).available == 0


def test_a_grant_needs_the_forms_token() -> None:
    person = newcomer()
    client = sign_in(make_person("admin", is_admin=True), enforce_csrf_checks=True)
    assert client.post(GRANT, form(person)).status_code == 403
    assert credits.balance_of(person).available == 0


@pytest.mark.parametrize("model", [Account, Transaction])
def test_nobody_adds_changes_or_deletes_superusers_included(
    admin: Client, model: type[Account] | type[Transaction]
) -> None:
    person = with_packs(500)
    row = model.objects.filter(person_id=person.id)[0]
    before = list(Entry.objects.filter(transaction__person_id=person.id).values())
    place = f"admin:billing_{model._meta.model_name}"
    assert admin.get(reverse(f"{place}_add")).status_code == 403
    assert admin.post(reverse(f"{place}_add"), {"balance": "5"}).status_code == 403
    assert admin.post(reverse(f"{place}_change", args=[row.pk]), {"balance": "5"}).status_code == 403
    assert admin.post(reverse(f"{place}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    admin.post(reverse(f"{place}_changelist"), chosen)
    assert list(Entry.objects.filter(transaction__person_id=person.id).values()) == before
    assert credits.balance_of(person).pack == 500


@pytest.mark.parametrize("model", ["account", "transaction"])
def test_the_ledger_is_found_by_address_or_id_and_shows_its_entries(admin: Client, model: str) -> None:
    person, other = with_packs(500), with_packs(300)
    for words in (person.email, person.email.split("@")[0], str(person.id), person.id.hex):
        page = admin.get(reverse(f"admin:billing_{model}_changelist"), {"q": words}).content.decode()
        assert person.email in page
        assert other.email not in page
    assert admin.get(reverse(f"admin:billing_{model}_changelist"), {"q": "no such \\ person %"}).status_code == 200
    row = Transaction.objects.get(person_id=person.id)
    page = admin.get(reverse("admin:billing_transaction_change", args=[row.pk])).content.decode()
    assert "A pack" in page
    assert "500" in page
    assert 'name="_save"' not in page
