"""What a person has, what a run holds, what it is charged and what comes back."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from billing import audit, credits, pricing
from billing.credits import Balance, Held, Shortfall
from billing.errors import AlreadyReleased, AlreadySettled, BadAmount, ForeignRun, NoReason, NotEnoughHeld, NothingHeld
from billing.pricing import Line, base_line, charged, not_charged, price_of
from klerai.accounts.models import Person
from tests.credit_people import NOON, newcomer, verified, with_packs


def of(amount: int) -> list[Line]:
    return [Line("tool", "q1-t1", 1, amount, amount)] if amount else []


def take(person: Person, amount: int, *, now: datetime = NOON) -> uuid.UUID:
    run_id = uuid.uuid4()
    assert isinstance(credits.hold(person, run_id=run_id, amount=amount, now=now), Held)
    return run_id


def spend(person: Person, amount: int, *, now: datetime = NOON) -> None:
    credits.settle(person, run_id=take(person, amount, now=now), lines=of(amount), now=now)


def balance(person: Person, *, now: datetime = NOON) -> tuple[int, int, int]:
    found = credits.balance_of(person, now=now)
    return found.daily, found.pack, found.held


def test_a_verified_person_has_fifty_credits_a_day() -> None:
    person = verified()
    assert credits.balance_of(person, now=NOON) == Balance(daily=50, pack=0, held=0)
    (limit,) = credits.limits_of(person, now=NOON)
    assert (limit.name, limit.used, limit.max) == ("daily", 0, 50)
    assert limit.resets_at == datetime(2026, 11, 21, tzinfo=UTC)


def test_an_unverified_person_has_none_until_the_address_is_verified_the_same_day() -> None:
    person = newcomer()
    assert balance(person) == (0, 0, 0)
    person.email_verified_at = NOON
    assert balance(person, now=NOON + timedelta(hours=1)) == (50, 0, 0)
    assert balance(person, now=NOON + timedelta(hours=2)) == (50, 0, 0)


def test_a_hold_moves_credits_out_of_reach_and_settling_less_returns_the_rest() -> None:
    person, stranger = verified(), verified()
    run_id = take(person, 17)
    assert balance(person) == (33, 0, 17)
    assert credits.held_for(run_id) == 17
    settlement = credits.settle(person, run_id=run_id, lines=[base_line()], now=NOON)
    assert (settlement.credits, settlement.daily, settlement.pack) == (5, 5, 0)
    assert (settlement.balance_before, settlement.balance_after) == (50, 45)
    assert balance(person) == (45, 0, 0)
    assert credits.held_for(run_id) == 0
    assert balance(stranger) == (50, 0, 0)


def test_daily_credits_go_first_and_packs_last() -> None:
    person = verified()
    credits.grant(person, amount=100, reason="A pack", now=NOON)
    spend(person, 47)
    run_id = uuid.uuid4()
    held = credits.hold(person, run_id=run_id, amount=5, now=NOON)
    assert held == Held(run_id, None, daily=3, pack=2, day=NOON.date())
    assert held.credits == 5
    settlement = credits.settle(person, run_id=run_id, lines=of(4), now=NOON)
    assert (settlement.daily, settlement.pack) == (3, 1)
    assert balance(person) == (0, 99, 0)


def test_the_same_hold_again_is_the_first_hold() -> None:
    person = verified()
    run_id = uuid.uuid4()
    first = credits.hold(person, run_id=run_id, amount=5, now=NOON)
    assert credits.hold(person, run_id=run_id, amount=9, now=NOON) == first
    tool = credits.hold(person, run_id=run_id, amount=2, ref="q1-t1", now=NOON)
    assert credits.hold(person, run_id=run_id, amount=2, ref="q1-t1", now=NOON) == tool
    assert balance(person) == (43, 0, 7)


def test_the_same_hold_again_is_the_first_hold_also_when_it_took_the_last_credits() -> None:
    person = with_packs(5)
    run_id = uuid.uuid4()
    first = credits.hold(person, run_id=run_id, amount=5, now=NOON)
    assert credits.hold(person, run_id=run_id, amount=5, now=NOON) == first


def test_too_few_credits_are_a_shortfall_that_names_its_limit_and_takes_nothing() -> None:
    person = verified(zone="Europe/Berlin")
    spend(person, 47)
    refused = credits.hold(person, run_id=uuid.uuid4(), amount=5, now=NOON)
    assert isinstance(refused, Shortfall)
    assert (refused.balance, refused.required) == (3, 5)
    assert (refused.limit.name, refused.limit.used, refused.limit.max) == ("daily", 47, 50)
    assert refused.resets_at.isoformat() == "2026-11-21T00:00:00+01:00"
    assert balance(person) == (3, 0, 0)


def test_release_gives_everything_back_and_twice_is_once() -> None:
    person = verified()
    run_id = take(person, 5)
    credits.hold(person, run_id=run_id, amount=10, ref="q1-t1", now=NOON)
    first = credits.release(person, run_id=run_id, now=NOON)
    assert (first.credits, first.balance_before, first.balance_after) == (0, 50, 50)
    spend(person, 7)
    assert credits.release(person, run_id=run_id, now=NOON) == first
    assert balance(person) == (43, 0, 0)


def test_settle_twice_charges_once_and_answers_the_first_settlement() -> None:
    person = verified()
    run_id = take(person, 9)
    first = credits.settle(person, run_id=run_id, lines=of(7), now=NOON)
    spend(person, 10)
    assert credits.settle(person, run_id=run_id, lines=of(9), now=NOON) == first
    assert credits.settlement_of(person, run_id=run_id) == first
    assert balance(person) == (33, 0, 0)


def test_a_run_is_settled_or_released_but_never_both() -> None:
    person = verified()
    settled, released = take(person, 5), take(person, 5)
    credits.settle(person, run_id=settled, lines=of(5), now=NOON)
    credits.release(person, run_id=released, now=NOON)
    with pytest.raises(AlreadySettled):
        credits.release(person, run_id=settled, now=NOON)
    with pytest.raises(AlreadyReleased):
        credits.settle(person, run_id=released, lines=of(5), now=NOON)
    assert balance(person) == (45, 0, 0)


def test_a_run_that_has_ended_can_hold_nothing_more() -> None:
    person = verified()
    settled, released = take(person, 5), take(person, 5)
    credits.settle(person, run_id=settled, lines=of(5), now=NOON)
    credits.release(person, run_id=released, now=NOON)
    with pytest.raises(AlreadySettled):
        credits.hold(person, run_id=settled, amount=2, ref="q1-t9", now=NOON)
    with pytest.raises(AlreadyReleased):
        credits.hold(person, run_id=released, amount=2, ref="q1-t9", now=NOON)
    assert balance(person) == (45, 0, 0)


def test_nothing_can_be_charged_beyond_what_is_held() -> None:
    person = verified()
    run_id = take(person, 5)
    with pytest.raises(NotEnoughHeld) as refused:
        credits.settle(person, run_id=run_id, lines=of(6), now=NOON)
    assert (refused.value.held, refused.value.credits) == (5, 6)
    with pytest.raises(NothingHeld):
        credits.settle(person, run_id=uuid.uuid4(), lines=[], now=NOON)
    assert balance(person) == (45, 0, 5)


def test_an_error_inside_a_larger_transaction_leaves_it_usable() -> None:
    person = verified()
    run_id = take(person, 5)
    with transaction.atomic():
        with pytest.raises(NotEnoughHeld):
            credits.settle(person, run_id=run_id, lines=of(6), now=NOON)
        credits.settle(person, run_id=run_id, lines=of(5), now=NOON)
    assert balance(person) == (45, 0, 0)


def test_a_hold_goes_when_the_larger_transaction_does() -> None:
    person = verified()
    assert balance(person) == (50, 0, 0)
    with transaction.atomic():
        take(person, 5)
        transaction.set_rollback(True)
    assert balance(person) == (50, 0, 0)


def test_a_stranger_can_neither_use_nor_end_somebody_elses_run() -> None:
    owner, stranger = verified(), verified()
    run_id = take(owner, 5)
    for ref in (None, "q1-t1"):
        with pytest.raises(ForeignRun):
            credits.hold(stranger, run_id=run_id, amount=5, ref=ref, now=NOON)
    with pytest.raises(NothingHeld):
        credits.settle(stranger, run_id=run_id, lines=of(5), now=NOON)
    with pytest.raises(NothingHeld):
        credits.release(stranger, run_id=run_id, now=NOON)
    assert credits.settlement_of(stranger, run_id=run_id) is None
    assert credits.entries_of(stranger, credits.Wanted(run_ids=[run_id])) == ()
    assert (balance(owner), balance(stranger)) == ((45, 0, 5), (50, 0, 0))


@pytest.mark.parametrize(
    "amount", [0, -1, 2**31, 2**63, 1_000_001, 1.0, 1e308, float("nan"), True, "5", "١٢", None, [5]]
)
def test_only_a_whole_number_of_credits_in_bounds_can_be_held_or_granted(amount: int) -> None:
    person = verified()
    with pytest.raises(BadAmount):
        credits.hold(person, run_id=uuid.uuid4(), amount=amount, now=NOON)
    with pytest.raises(BadAmount):
        credits.grant(person, amount=amount, reason="A pack", now=NOON)
    assert balance(person) == (50, 0, 0)


def test_a_line_of_less_than_nothing_cannot_be_charged() -> None:
    person = verified()
    run_id = take(person, 5)
    for amounts in ((-5,), (5, -10), (-1, 1)):
        with pytest.raises(BadAmount):
            credits.settle(person, run_id=run_id, lines=[line for n in amounts for line in of(n)], now=NOON)
    assert balance(person) == (45, 0, 5)


def test_a_grant_needs_a_reason_and_happens_once_a_key() -> None:
    person = newcomer()
    with pytest.raises(NoReason):
        credits.grant(person, amount=500, reason="  ", now=NOON)
    key = f"grant:pack:{uuid.uuid4()}"
    first = credits.grant(person, amount=500, reason="A pack", key=key, now=NOON)
    again = credits.grant(person, amount=500, reason="A pack", key=key, now=NOON)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.balance == again.balance == Balance(daily=0, pack=500, held=0)


def test_open_holds_are_the_runs_nobody_ended() -> None:
    person = with_packs(100)
    hanging, ended = take(person, 5), take(person, 5)
    credits.hold(person, run_id=hanging, amount=2, ref="q1-t1", now=NOON)
    credits.release(person, run_id=ended, now=NOON)
    assert credits.open_holds().count(hanging) == 1
    assert ended not in credits.open_holds()
    assert hanging not in credits.open_holds(before=NOON)
    assert hanging in credits.open_holds(before=NOON + timedelta(minutes=15))
    credits.release(person, run_id=hanging, now=NOON)
    assert hanging not in credits.open_holds()


def test_the_ledger_reads_newest_first_and_goes_on_where_it_stopped() -> None:
    person = verified()
    credits.grant(person, amount=10, reason="Sorry for the trouble", now=NOON)
    run_id = take(person, 52)
    settlement = credits.settle(person, run_id=run_id, lines=of(51), now=NOON)
    rows = credits.entries_of(person)
    assert [(row.kind, row.daily, row.pack, row.held, row.spent, row.balance_after) for row in rows] == [
        ("settle", -50, -1, -52, 51, 9),
        ("hold", 0, 0, 52, 0, 8),
        ("grant", 0, 10, 0, 0, 60),
        ("grant", 50, 0, 0, 0, 50),
    ]
    assert rows[0].balance_after == settlement.balance_after
    assert (rows[0].run_id, rows[2].reason) == (run_id, "Sorry for the trouble")
    first = credits.entries_of(person, limit=3)
    assert first + credits.entries_of(person, limit=3, before=first[-1].number) == rows
    assert credits.entries_of(person, credits.Wanted(run_ids=[run_id])) == rows[:2]
    assert credits.entries_of(person, credits.Wanted(kinds=["grant"])) == rows[2:]
    assert credits.entries_of(verified()) == ()


def test_a_hold_and_a_settle_are_two_statements_each() -> None:
    person = verified()
    run_id = take(person, 5)
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        credits.hold(person, run_id=run_id, amount=2, ref="q1-t1", now=NOON)
        assert len(asked) == 2
        credits.settle(person, run_id=run_id, lines=of(7), now=NOON)
    assert len(asked) == 4


def test_no_movement_reads_the_ledger_from_end_to_end() -> None:
    person = verified()
    credits.balance_of(person, now=NOON)
    with transaction.atomic():
        before = scans()
        for _ in range(10):  # a connection settles on its plans after a few
            spend(person, 2)
        assert scans() == before


def scans() -> int:
    """How often the connection read a whole table of the ledger."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(seq_scan) FROM pg_stat_xact_user_tables WHERE starts_with(relname, 'billing_')")
        (count,) = cursor.fetchone()
    return int(count)


def test_looking_at_an_open_day_locks_and_writes_nothing() -> None:
    person = verified()
    credits.balance_of(person, now=NOON)
    with CaptureQueriesContext(connection) as asked:
        credits.balance_of(person, now=NOON)
    assert len(asked) == 1
    assert "FOR UPDATE" not in asked[0]["sql"]


def test_the_seeds_examples_cost_what_they_say() -> None:
    documentation, github, tool = (price_of(category) for category in ("documentation", "github", "anything"))
    assert pricing.total([base_line()]) == 5
    assert pricing.total([base_line(), charged(documentation, ref="q1-t1")]) == 15
    twice = [charged(github, ref="q1-t2"), charged(github, ref="q1-t3")]
    assert pricing.total([base_line(), charged(documentation, ref="q1-t1"), *twice]) == 21
    assert charged(tool, ref="q1-t1") == Line("tool", "q1-t1", 1, 2, 2)
    assert price_of("documentation", already_documented=True).credits == 0
    assert price_of("anything", tool="find_tools").credits == 0
    assert not_charged("failed", unit_price=3, ref="q1-t4", note="It failed.").credits == 0


def test_a_quote_keeps_to_the_lower_of_the_ceilings() -> None:
    person = newcomer()
    assert pricing.quote(person) == pricing.Quote(5, 25)
    assert pricing.quote(person, max_credits=12) == pricing.Quote(5, 12)
    assert pricing.quote(person, max_credits=500) == pricing.Quote(5, 25)
    for nonsense in (4, 0, -1, 1001, 2**63, True):
        with pytest.raises(BadAmount):
            pricing.quote(person, max_credits=nonsense)


def test_receipt_lines_are_values() -> None:
    assert replace(base_line("q1"), note="x") == Line("base", "q1", 1, 5, 5, "x")


def test_after_all_that_the_ledger_keeps_its_rules() -> None:
    person = with_packs(10)
    spend(person, 3)
    assert audit.violations() == []
