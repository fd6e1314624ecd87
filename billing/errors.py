"""What can go wrong with credits. Running out is not here: that is a value, `Shortfall`.

BillingError
├── BadAmount
├── NoReason
├── AccountBlocked
├── RunError
│   ├── NothingHeld
│   ├── NotEnoughHeld
│   ├── AlreadySettled
│   ├── AlreadyReleased
│   └── ForeignRun
└── SaleError
    ├── NothingSold
    ├── NotOffered
    ├── AlreadySubscribed
    ├── NotSubscribed
    ├── StripeUnavailable
    ├── StripeRefused
    ├── BadSignature
    └── BadAnnouncement
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


class SaleError(BillingError):
    """Something about buying that cannot be done."""


class NothingSold(SaleError):
    """This server sells nothing: it has no key of Stripe, and no test checkout."""


class NotOffered(SaleError):
    """There is no such plan or pack, or it has no price that Stripe knows."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not for sale.")
        self.name = name


class AlreadySubscribed(SaleError):
    """A person has one subscription at a time."""

    def __init__(self, person_id: UUID) -> None:
        super().__init__(f"{person_id} has a subscription.")
        self.person_id = person_id


class NotSubscribed(SaleError):
    """There is nothing to be changed or cancelled."""

    def __init__(self, person_id: UUID) -> None:
        super().__init__(f"{person_id} has no subscription.")
        self.person_id = person_id


class StripeUnavailable(SaleError):
    """Stripe did not answer, or not now; asking again may help."""


class StripeRefused(SaleError):
    """Stripe will not do what was asked. `str(error)` is its own sentence, for operators."""


class BadSignature(SaleError):
    """An announcement that nobody who knows the secret has signed just now."""


class BadAnnouncement(SaleError):
    """Signed, and yet not for us: of another account, of the other mode, or of no form that is known."""
