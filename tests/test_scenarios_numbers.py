"""BM7: no number that anybody can send makes a balance rise, and saving a profile never touches money."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from billing import credits
from billing.credits import Held
from billing.pricing import Line
from klerai.accounts.models import Person
from tests.credit_people import verified
from tests.fakes.stripe_server import StripeFake
from tests.harness.scenario import Scenario
from tests.people import bearer, key_text, make_person, make_unverified, sign_in
from tests.selling import Buyer, announce, work_off

VALUES = [-1, 0, 2**31, 2**63, 1e308, float("nan"), "١٢", 12.5, [12], None, True, "12e3", "0x10", ""]
Send = Callable[[Person, Any], int]


def over_api(path: str, name: str, *, method: str = "post", **others: object) -> Send:
    """A JSON body with the value; NaN is written as careless programs write it."""

    def send(person: Person, value: Any) -> int:
        body = json.dumps({**others, name: value})
        headers = bearer(key_text(person))
        answer = Client().generic(method.upper(), path, body, content_type="application/json", headers=headers)
        return answer.status_code

    return send


def in_query(path: str, name: str) -> Send:
    def send(person: Person, value: Any) -> int:
        return Client().get(path, {name: str(value)}, headers=bearer(key_text(person))).status_code

    return send


def by_form(path: str, name: str) -> Send:
    def send(person: Person, value: Any) -> int:
        return sign_in(person).post(path, {name: str(value)}).status_code

    return send


def by_staff(person: Person, value: Any) -> int:
    form = {"email": person.email, "amount": str(value), "reason": "Numbers", "key": uuid.uuid4()}
    return sign_in(make_person("admin", is_admin=True)).post("/admin/billing/account/grant/", form).status_code


DOORS: dict[str, Send] = {
    "a pack": over_api("/api/billing/checkout", "pack"),
    "a plan": over_api("/api/billing/checkout", "plan"),
    "the ledger's limit": in_query("/api/billing/ledger", "limit"),
    "the ledger's cursor": in_query("/api/billing/ledger", "cursor"),
    "the ledger's page": in_query("/billing/", "before"),
    "the ceiling of a person": by_form("/settings/ceiling/", "ceiling"),
    "a grant": by_staff,
}


@pytest.mark.thorough
@pytest.mark.scenario
@pytest.mark.parametrize("door", DOORS)
def test_a_hostile_number_never_raises_a_balance(door: str, stripe_fake: StripeFake, settings: Settings) -> None:
    settings.LOCAL_MODE = True  # staff need no second factor
    person = verified()
    before = credits.balance_of(person)
    statuses = {repr(value): DOORS[door](person, value) for value in VALUES}
    after = credits.balance_of(person)
    assert after.available <= before.available
    assert {status for status in statuses.values() if status >= 500} == set(), statuses


@pytest.mark.thorough
@pytest.mark.scenario
@pytest.mark.parametrize("name", ["amount_subtotal", "quantity", "credits"])
def test_a_hostile_number_of_a_checkout_never_raises_a_balance(stripe_fake: StripeFake, name: str) -> None:
    """What Stripe says is compared with what was ordered, and metadata is not read for it at all."""
    for value in VALUES:
        alice = Buyer(stripe_fake, make_unverified())
        session = stripe_fake.world.get(alice.begin(pack="500"))
        match name:
            case "quantity":
                session["line_items"]["data"][0]["quantity"] = value
            case "credits":
                session["metadata"]["credits"] = value
            case _:
                session[name] = value
        stripe_fake.world.pay(session["id"])
        events = [event for event in alice.news() if event["type"] == "checkout.session.completed"]
        for event in events:
            if announce(stripe_fake, event) == 200:
                with suppress(Exception):  # the work of nonsense may fail, and is then seen by operators
                    work_off([event])
        bought = 500 if name == "credits" or (name == "quantity" and value == 1) else 0
        assert credits.balance_of(alice.person).pack == bought, value


@pytest.mark.scenario("BM7")
def test_saving_a_profile_while_credits_are_spent_touches_no_money(scenario: Scenario) -> None:
    count = scenario.size(full=2_000, normal=400, quick=60)
    person = verified()
    credits.grant(person, amount=count, reason="A pack")
    stale = Person.objects.get(pk=person.pk)
    before = credits.balance_of(person)

    def spend() -> int:
        try:
            spent = 0
            for _ in range(count // 4):
                run_id = uuid.uuid4()
                assert isinstance(credits.hold(person, run_id=run_id, amount=1), Held)
                credits.settle(person, run_id=run_id, lines=[Line("tool", None, 1, 1, 1)])
                spent += 1
            return spent
        finally:
            connection.close()

    def save() -> int:
        browser = sign_in(person)
        try:
            for number in range(count // 4):
                stale.name = f"Name {number}"
                stale.save()  # a whole row, as it was read long ago
                browser.post("/settings/name/", {"name": f"Name {number}"})
            return 0
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        works = [pool.submit(work) for work in [spend, save] * 4]
        spent = sum(work.result() for work in works)
    after = credits.balance_of(person)
    scenario.figures = {"spends": spent, "saves": 2 * (count // 4) * 4}
    scenario.must_be_zero(
        lost_or_made=before.available - spent - after.available,
        still_held=after.held,
    )
