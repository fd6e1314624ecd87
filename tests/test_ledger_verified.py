"""“Verify my ledger”: everything added up again, and what does not hold said in plain words."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from billing import credits
from billing.pricing import base_line
from chat.models import Run
from klerai.accounts.models import Person
from tests.credit_people import newcomer, with_packs
from tests.harness.doors import by_session
from tests.people import make_charlie
from tests.test_credits_page import read
from tests.test_ledger_audit import damaged, moved_by, superuser

VERIFY = "/billing/?verify=1"
ADVICE = "Nothing was changed. Until this is put right, new questions may be refused. Write to the people who run"


def settled(person: Person) -> tuple[uuid.UUID, dict[str, uuid.UUID]]:
    """A question that was charged; its run, and the ledger's rows of it by their kind."""
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=5)
    credits.settle(person, run_id=run_id, lines=[base_line()])
    rows = credits.entries_of(person, credits.Wanted(run_ids=[run_id]))
    return run_id, {row.kind: row.id for row in rows}


def test_a_ledger_in_order_says_so_with_its_figures(server: str) -> None:
    with by_session(server) as alice:
        alice.answer("What is 17.5 % of 2,480?")
        alice.answer("Count to 3.")
        shown = read(alice.person, VERIFY)
        assert "6 lines and 2 receipts added up. They match each other and your balance: 38 credits." in shown
        assert "added up" not in read(alice.person)


def test_a_question_that_is_being_answered_is_no_fault() -> None:
    person = with_packs(20)
    credits.hold(person, run_id=uuid.uuid4(), amount=7)
    assert "2 lines and 0 receipts added up. They match each other and your balance: 13 credits." in read(
        person, VERIFY
    )


def test_nothing_at_all_adds_up_too() -> None:
    shown = read(newcomer(), VERIFY)
    assert "0 lines and 0 receipts added up. They match each other and your balance: 0 credits." in shown


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("wallet", "Your free pack credits stand at 1,015, but the entries come to 15."),
        ("spent", "What you spent of pack credits stand at 1,005, but the entries come to 5."),
    ],
)
def test_a_balance_that_is_not_its_entries_is_named(kind: str, said: str) -> None:
    person, charlie = with_packs(20), with_packs(20)
    settled(person)
    with moved_by(person, 1_000, kind=kind):
        shown = read(person, VERIFY)
        assert "3 lines and 0 receipts added up. They do not match." in shown
        assert said in shown
        assert ADVICE in shown
        assert f"with the number {person.pk}" in shown
        assert "They match each other and your balance: 20 credits." in read(charlie, VERIFY)
    assert "They match each other" in read(person, VERIFY)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM billing_entry WHERE transaction_id = %(settle)s", "1 line of the ledger came out wrong"),
        (
            "DELETE FROM billing_entry WHERE amount < 0 AND transaction_id = %(settle)s",
            "1 question ended twice, or ended and still held credits.",
        ),
        ("DELETE FROM billing_transaction WHERE id = %(hold)s", "ended twice, or ended and still held credits."),
        (
            "UPDATE billing_transaction SET pack_after = 99 WHERE id = %(settle)s",
            "1 line of the ledger came out wrong, the first on ",
        ),
    ],
)
def test_each_kind_of_damage_is_told_to_its_person_and_to_nobody_else(statement: str, said: str) -> None:
    person, charlie = with_packs(20), make_charlie()
    run_id, rows = settled(person)
    with damaged(statement, rows, run_id=run_id):
        shown = read(person, VERIFY)
        assert said in shown
        assert ADVICE in shown
        assert "They match each other" in read(charlie, VERIFY)
    assert "They match each other" in read(person, VERIFY)


def test_a_receipt_that_says_another_sum_is_named(server: str) -> None:
    with by_session(server) as alice:
        run_id = alice.answer("Count to 3.")["run_id"]
        alice.answer("Count to 4.")
    with another_receipt(run_id):
        assert f"The receipt of run {run_id} says another sum than the ledger." in read(alice.person, VERIFY)
    assert "They match each other" in read(alice.person, VERIFY)


@contextmanager
def another_receipt(run_id: str) -> Iterator[None]:
    run = Run.objects.get(run_id=run_id)
    Run.objects.filter(pk=run.pk).update(receipt={**(run.receipt or {}), "credits": 1})
    try:
        yield
    finally:
        Run.objects.filter(pk=run.pk).update(receipt=run.receipt)


def test_a_ledger_without_any_sense_is_still_answered() -> None:
    """Every row of the person's accounts taken away at once."""
    person = with_packs(20)
    with superuser() as db:
        db.execute("CREATE TEMP TABLE kept AS SELECT * FROM billing_account WHERE person_id = %s", [person.id])
        db.execute("DELETE FROM billing_account WHERE person_id = %s AND kind <> 'wallet'", [person.id])
        try:
            assert "They do not match." in read(person, VERIFY)
        finally:
            db.execute("DELETE FROM billing_account WHERE person_id = %s", [person.id])
            db.execute("INSERT INTO billing_account SELECT * FROM kept")
    assert "They match each other" in read(person, VERIFY)
