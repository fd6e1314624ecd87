"""What must hold after everything: the invariants, and the ledger agreeing with what a person was told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from billing.audit import Violation
from billing.credits import balance_of, held_for, settlement_of
from chat.invariants import violations
from chat.models import Run
from tests.harness.frames import logged


@contextmanager
def nothing_breaks() -> Iterator[list[Violation]]:
    """No invariant is broken that was not before: other tests leave ledgers that they broke on purpose, and runs that
    grow too old meanwhile.

    What is yielded holds the new violations once the block has ended.
    """
    before = set(violations())
    begun = {str(key) for key in Run.objects.filter(state__in=("queued", "running")).values_list("pk", flat=True)}
    found: list[Violation] = []
    yield found
    fresh = [violation for violation in violations() if violation not in before]
    found += [violation for violation in fresh if violation.id != "I7" or violation.subject not in begun]
    assert not found, found


def charged(run: Run) -> int:
    """What the ledger says a run cost, the same as its receipt says, line by line; nothing is held for it."""
    settlement = settlement_of(run.person, run_id=run.pk)
    assert settlement is not None
    assert held_for(run.pk) == 0
    assert run.receipt is not None
    assert run.receipt["credits"] == settlement.credits == sum(line["credits"] for line in run.receipt["lines"])
    assert run.receipt["bucket_split"] == {"daily": settlement.daily, "pack": settlement.pack}
    assert run.receipt["balance_before"] - run.receipt["balance_after"] == settlement.credits
    assert run.receipt["run_id"] == str(run.run_id)
    return settlement.credits


def ended_once(run: Run) -> dict[str, Any]:
    """The data of a run's one terminal event, which stands last."""
    frames = logged(run.run_id)
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    assert [frame.is_terminal for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert frames[-1].seq == run.last_seq
    assert frames[-1].data["receipt"] == run.receipt
    return frames[-1].data


def left(run: Run) -> int:
    return balance_of(run.person).available
