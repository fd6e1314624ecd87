"""The audit finds what the triggers could not prevent, and blocks the account (BM8)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command

from billing import audit, credits
from billing.credits import Held
from billing.errors import AccountBlocked
from billing.models import Account
from billing.pricing import base_line
from klerai.accounts.models import Person
from klerai.postgres import EmbeddedServer
from klerai.postgres.cluster import SUPERUSER
from tests.credit_people import NOON, verified, with_packs


@contextmanager
def superuser() -> Iterator[psycopg.Connection[Any]]:
    """Somebody no trigger stops."""
    url = EmbeddedServer(settings.TEST_DATA_DIR).url(SUPERUSER, database=settings.TEST_DATABASE)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET session_replication_role = replica")
        yield db


@contextmanager
def moved_by(person: Person, amount: int, *, kind: str = "wallet") -> Iterator[None]:
    """One balance of the person off by `amount`, until the end of the block."""
    statement = (
        "UPDATE billing_account SET balance = balance + %s WHERE person_id = %s AND kind = %s AND bucket = 'pack'"
    )
    with superuser() as db:
        db.execute(statement, [amount, person.id, kind])
        try:
            yield
        finally:
            db.execute(statement, [-amount, person.id, kind])


def found_about(person: Person) -> list[tuple[str, str]]:
    subjects = {str(account.id) for account in Account.objects.filter(person_id=person.id)}
    return [(violation.id, violation.what) for violation in audit.violations() if violation.subject in subjects]


@pytest.mark.scenario
def test_a_corrupt_balance_is_found_and_blocks_the_person_until_it_is_right_again() -> None:
    person, stranger = with_packs(100), with_packs(100)
    run_id = uuid.uuid4()
    held = credits.hold(person, run_id=run_id, amount=10, now=NOON)
    with moved_by(person, 1000):
        audit.reconcile()
        assert found_about(person) == [
            ("I2", f"The wallet (pack) of person {person.id} stands at 1090, but its entries sum to 90.")
        ]
        with pytest.raises(AccountBlocked):
            credits.hold(person, run_id=uuid.uuid4(), amount=5, now=NOON)
        assert credits.hold(person, run_id=run_id, amount=10, now=NOON) == held
        assert credits.settle(person, run_id=run_id, lines=[base_line()], now=NOON).credits == 5
        assert isinstance(credits.hold(stranger, run_id=uuid.uuid4(), amount=5, now=NOON), Held)
    audit.reconcile()
    assert found_about(person) == []
    assert isinstance(credits.hold(person, run_id=uuid.uuid4(), amount=95, now=NOON), Held)


def test_a_run_of_a_blocked_person_can_still_be_released() -> None:
    person = with_packs(20)
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=5, now=NOON)
    with moved_by(person, 1):
        audit.reconcile()
        assert credits.release(person, run_id=run_id, now=NOON).credits == 0
        assert credits.held_for(run_id) == 0
    audit.reconcile()
    assert found_about(person) == []


def test_the_command_names_each_violation_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    person = with_packs(20)
    with moved_by(person, 7):
        with pytest.raises(SystemExit) as end:
            call_command("audit_ledger")
        assert end.value.code == 1
    said = capsys.readouterr().out
    assert f"I2: The wallet (pack) of person {person.id} stands at 27, but its entries sum to 20." in said
    assert "Blocked accounts: 1." in said
    call_command("audit_ledger")
    assert capsys.readouterr().out.startswith("The ledger is in order: ")


def test_an_audit_of_sound_accounts_blocks_nobody() -> None:
    person = verified()
    credits.hold(person, run_id=uuid.uuid4(), amount=5)
    audit.reconcile()
    assert not Account.objects.filter(person_id=person.id, blocked_at__isnull=False).exists()


@pytest.mark.scenario
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM billing_entry WHERE amount < 0 AND transaction_id = %(settle)s", {"I1", "I2", "I4"}),
        ("DELETE FROM billing_entry WHERE transaction_id = %(settle)s", {"I1", "I2", "I4"}),
        ("UPDATE billing_entry SET amount = amount * 2 WHERE transaction_id = %(hold)s", {"I2", "I4"}),
        ("DELETE FROM billing_transaction WHERE id = %(hold)s", {"I4"}),
        (
            "INSERT INTO billing_transaction (id, key, kind, person_id, run_id, created_at, daily_after, pack_after)"
            " SELECT gen_random_uuid(), 'again:' || id, 'release', person_id, run_id, now(), 0, 0"
            " FROM billing_transaction WHERE id = %(settle)s",
            {"I1", "I5"},
        ),
    ],
)
def test_each_kind_of_damage_is_named(statement: str, expected: set[str]) -> None:
    person = with_packs(20)
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=5, now=NOON)
    credits.settle(person, run_id=run_id, lines=[base_line()], now=NOON)
    rows = {row.kind: row.id for row in credits.entries_of(person, credits.Wanted(run_ids=[run_id]))}
    with damaged(statement, rows, run_id=run_id):
        assert {violation.id for violation in audit.violations()} == expected
    assert audit.violations() == []


@contextmanager
def damaged(statement: str, rows: dict[Any, uuid.UUID], *, run_id: uuid.UUID) -> Iterator[None]:
    """The damage, and everything of the run put back as it was."""
    with superuser() as db:
        entries = "SELECT * FROM billing_entry WHERE transaction_id = ANY(%s)"
        ids = list(rows.values())
        db.execute(f"CREATE TEMP TABLE kept_entry AS {entries}", [ids])
        db.execute("CREATE TEMP TABLE kept_transaction AS SELECT * FROM billing_transaction WHERE id = ANY(%s)", [ids])
        db.execute(statement, rows)
        try:
            yield
        finally:
            db.execute("DELETE FROM billing_entry WHERE transaction_id = ANY(%s)", [ids])
            db.execute("DELETE FROM billing_transaction WHERE run_id = %s", [run_id])
            columns = (
                "id, key, kind, person_id, run_id, day, reason, created_by, created_at, daily_after, pack_after, number"
            )
            db.execute(
                f"INSERT INTO billing_transaction ({columns}) OVERRIDING SYSTEM VALUE"
                f" SELECT {columns} FROM kept_transaction"
            )
            db.execute("INSERT INTO billing_entry OVERRIDING SYSTEM VALUE SELECT * FROM kept_entry")


def test_a_negative_wallet_is_an_overdraft() -> None:
    person = with_packs(20)
    with superuser() as db:
        db.execute("ALTER TABLE billing_account DROP CONSTRAINT account_is_never_overdrawn")
        try:
            with moved_by(person, -25):
                assert [number for number, _ in found_about(person)] == ["I2", "I3"]
        finally:
            db.execute(
                "ALTER TABLE billing_account ADD CONSTRAINT account_is_never_overdrawn"
                " CHECK (balance >= 0 OR kind = 'issued')"
            )
