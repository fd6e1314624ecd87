"""Whether a person's ledger adds up, and says the same as the receipts of their questions."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from billing import checkup
from billing.checkup import Checkup
from billing.usage import charges_of
from chat.models import Run
from chat.queries import runs_of
from klerai.accounts.models import Person

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`disagreeing` are questions whose receipt says another sum than the ledger."""

    ledger: Checkup
    receipts: int
    disagreeing: tuple[Run, ...]

    @property
    def is_sound(self) -> bool:
        return self.ledger.is_sound and not self.disagreeing


def verify(person: Person) -> Verdict:
    """Add everything up again. What does not hold is logged as well, so that the operator hears of it."""
    # Receipts first: a question that ends meanwhile is then charged without being asked for its receipt.
    receipts = dict(runs_of(person).exclude(state__in=Run.LIVE).values_list("pk", "receipt__credits"))
    charged = {charge.run_id: charge.credits for charge in charges_of(person)}
    wrong = [key for key, credits in receipts.items() if credits != charged.get(key, 0)]
    disagreeing = tuple(runs_of(person).filter(pk__in=wrong).order_by("created_at"))
    verdict = Verdict(checkup.check(person), len(receipts), disagreeing)
    if not verdict.is_sound:
        logger.error("ledger_does_not_add_up", person=str(person.pk), ledger=verdict.ledger, receipts=wrong)
    return verdict
