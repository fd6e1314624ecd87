"""What can go wrong with credits. Running out is not here: that is a value, `Shortfall`.

BillingError
├── BadAmount
├── NoReason
├── AccountBlocked
└── RunError
    ├── NothingHeld
    ├── NotEnoughHeld
    ├── AlreadySettled
    ├── AlreadyReleased
    └── ForeignRun
"""

from __future__ import annotations

from uuid import UUID


class BillingError(Exception):
    """Something about credits that a caller did not ask for correctly, or that is broken."""


class BadAmount(BillingError):
    """A number of credits outside what one movement may carry."""

    def __init__(self, amount: object, *, at_least: int, at_most: int) -> None:
        super().__init__(f"{amount!r} is not a whole number of credits from {at_least} to {at_most:,}.")
        self.amount = amount
        self.at_least = at_least
        self.at_most = at_most


class NoReason(BillingError):
    """Credits are never given without saying why."""

    def __init__(self, person_id: UUID) -> None:
        super().__init__("A grant needs a reason.")
        self.person_id = person_id


class AccountBlocked(BillingError):
    """The audit found a balance that its entries do not explain; nothing is spent until it is put right."""

    def __init__(self, person_id: UUID) -> None:
        super().__init__(f"The credits of {person_id} are blocked: a balance does not agree with its entries.")
        self.person_id = person_id


class RunError(BillingError):
    """A run's credits are not in the state the call needs."""

    def __init__(self, run_id: UUID, message: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NothingHeld(RunError):
    def __init__(self, run_id: UUID) -> None:
        super().__init__(run_id, f"Run {run_id} holds no credits of this person.")


class NotEnoughHeld(RunError):
    def __init__(self, run_id: UUID, *, held: int, credits: int) -> None:
        super().__init__(run_id, f"Run {run_id} holds {held} credits; {credits} cannot be charged.")
        self.held = held
        self.credits = credits


class AlreadySettled(RunError):
    def __init__(self, run_id: UUID) -> None:
        super().__init__(run_id, f"Run {run_id} was settled.")


class AlreadyReleased(RunError):
    def __init__(self, run_id: UUID) -> None:
        super().__init__(run_id, f"Run {run_id} was released.")


class ForeignRun(RunError):
    def __init__(self, run_id: UUID) -> None:
        super().__init__(run_id, f"Run {run_id} holds credits of another person.")
