"""What the database itself refuses, whoever asks and whatever the application believes (BM8)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import settings

from billing import audit, credits
from billing.pricing import base_line
from klerai.accounts.models import Person
from klerai.postgres import APP, OWNER, EmbeddedServer
from tests.credit_people import verified


@contextmanager
def connected(role: str) -> Iterator[psycopg.Connection[Any]]:
    url = EmbeddedServer(settings.TEST_DATA_DIR).url(role, database=settings.TEST_DATABASE)
    with psycopg.connect(url) as db:
        yield db
        db.rollback()


def account(db: psycopg.Connection[Any], person: Person, kind: str, bucket: str = "daily") -> uuid.UUID:
    found = db.execute(
        "SELECT id FROM billing_account WHERE person_id = %s AND kind = %s AND bucket = %s", [person.id, kind, bucket]
    ).fetchone()
    assert found is not None
    row_id: uuid.UUID = found[0]
    return row_id


def write(db: psycopg.Connection[Any], person: Person, amounts: dict[uuid.UUID, int], *, kind: str = "grant") -> None:
    """A transaction as a careless program would write it."""
    run_id = None if kind == "grant" else uuid.uuid4()
    made = uuid.uuid4()
    db.execute(
        "INSERT INTO billing_transaction (id, key, kind, person_id, run_id, created_at, daily_after, pack_after)"
        " VALUES (%s, %s, %s, %s, %s, now(), 0, 0)",
        [made, f"test:{made}", kind, person.id, run_id],
    )
    if amounts:
        db.execute(
            "INSERT INTO billing_entry (transaction_id, account_id, amount)"
            " SELECT %s, account, amount FROM unnest(%s::uuid[], %s::bigint[]) AS entry(account, amount)",
            [made, list(amounts), list(amounts.values())],
        )


def someone_with_a_settled_run() -> Person:
    person = verified()
    run_id = uuid.uuid4()
    credits.hold(person, run_id=run_id, amount=7)
    credits.settle(person, run_id=run_id, lines=[base_line()])
    return person


TAMPERING = [
    "UPDATE billing_entry SET amount = amount * 2",
    "DELETE FROM billing_entry",
    "TRUNCATE billing_entry CASCADE",
    "UPDATE billing_transaction SET kind = 'grant'",
    "UPDATE billing_transaction SET key = key || 'x'",
    "DELETE FROM billing_transaction",
    "TRUNCATE billing_transaction CASCADE",
    "UPDATE billing_account SET balance = balance + 1",
    "UPDATE billing_account SET person_id = gen_random_uuid()",
    "UPDATE billing_account SET kind = 'wallet' WHERE kind = 'issued'",
    "DELETE FROM billing_account",
    "TRUNCATE billing_account CASCADE",
    "INSERT INTO billing_account (id, person_id, kind, bucket, balance)"
    " VALUES (gen_random_uuid(), gen_random_uuid(), 'wallet', 'pack', 1000)",
    "INSERT INTO billing_account (id, person_id, kind, bucket)"
    " VALUES (gen_random_uuid(), gen_random_uuid(), 'purse', 'pack')",
]
ESCAPES = [
    "ALTER TABLE billing_entry DISABLE TRIGGER ALL",
    "DROP TRIGGER guard ON billing_account",
    "DROP TABLE billing_entry",
    "SET session_replication_role = replica",
    "CREATE OR REPLACE FUNCTION billing_guard_account() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "ALTER FUNCTION billing_apply_entries() SECURITY INVOKER",
    "CREATE TABLE public.billing_entry_2 (LIKE billing_entry)",
    f"SET ROLE {OWNER}",
    "GRANT UPDATE ON billing_entry TO CURRENT_USER",
]


@pytest.mark.scenario
@pytest.mark.parametrize("statement", TAMPERING + ESCAPES)
def test_the_application_role_cannot_tamper(statement: str) -> None:
    person = someone_with_a_settled_run()
    before = credits.entries_of(person), credits.balance_of(person)
    with connected(APP) as db:
        if statement.startswith("GRANT"):  # granting what one does not have is a warning, and changes nothing
            db.execute(statement)
            statement = TAMPERING[0]
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.IntegrityError)):
            db.execute(statement)
    assert (credits.entries_of(person), credits.balance_of(person)) == before


@pytest.mark.scenario
@pytest.mark.parametrize("statement", TAMPERING)
def test_the_triggers_refuse_the_same_to_the_owner_of_the_tables(statement: str) -> None:
    person = someone_with_a_settled_run()
    before = credits.entries_of(person), credits.balance_of(person)
    with connected(OWNER) as db, pytest.raises(psycopg.IntegrityError):
        db.execute(statement)
    assert (credits.entries_of(person), credits.balance_of(person)) == before


def test_entries_that_do_not_sum_to_zero_are_refused() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.IntegrityError, match="sum to zero"):
        write(db, person, {account(db, person, "wallet"): 5, account(db, person, "issued"): -4})


def test_a_transaction_without_entries_is_refused_at_commit() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db:
        write(db, person, {})
        with pytest.raises(psycopg.IntegrityError, match="sum to zero"):
            db.commit()


def test_nothing_is_added_to_a_transaction_once_it_is_written() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.IntegrityError, match="written together"):
        db.execute(
            "INSERT INTO billing_entry (transaction_id, account_id, amount)"
            " SELECT movement.id, account, amount FROM billing_transaction movement,"
            " unnest(%s::uuid[], %s::bigint[]) AS entry(account, amount)"
            " WHERE movement.person_id = %s AND movement.kind = 'settle'",
            [[account(db, person, "wallet"), account(db, person, "spent")], [5, -5], person.id],
        )


def test_credits_never_move_between_people() -> None:
    person, stranger = someone_with_a_settled_run(), someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.IntegrityError, match="of one person"):
        write(db, person, {account(db, person, "wallet"): 5, account(db, stranger, "wallet"): -5})


def test_a_wallet_never_goes_below_zero() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.errors.CheckViolation, match="account_is_never_overdrawn"):
        write(db, person, {account(db, person, "wallet"): -46, account(db, person, "spent"): 46})


@pytest.mark.parametrize("amount", [1_000_001, 2**31, 2**62])
def test_no_entry_moves_more_than_a_million(amount: int) -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.errors.CheckViolation, match="entry_is_bounded"):
        write(db, person, {account(db, person, "wallet"): amount, account(db, person, "issued"): -amount})


def test_a_table_of_the_same_name_in_front_does_not_lead_the_triggers_astray() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db:
        wallet, issued = account(db, person, "wallet"), account(db, person, "issued")
        db.execute("CREATE TEMP TABLE billing_account AS SELECT * FROM public.billing_account")
        write(db, person, {wallet: 5, issued: -5})
        found = db.execute("SELECT balance FROM public.billing_account WHERE id = %s", [wallet]).fetchone()
        assert found == (50,)
        db.rollback()
    assert audit.violations() == []


def test_a_key_is_used_once_also_by_hand() -> None:
    person = someone_with_a_settled_run()
    with connected(APP) as db, pytest.raises(psycopg.errors.UniqueViolation):
        db.execute(
            "INSERT INTO billing_transaction (id, key, kind, person_id, run_id, created_at, daily_after, pack_after)"
            " SELECT gen_random_uuid(), key, 'release', person_id, run_id, now(), 0, 0"
            " FROM billing_transaction WHERE person_id = %s AND kind = 'settle'",
            [person.id],
        )
