"""What adding a ledger up came to, in words and figures, and what to do when it does not come out right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from billing.checkup import Checkup, WrongBalance
from chat.ledger_check import Verdict
from chat.templatetags.page import credits, number
from klerai.accounts.models import Person

_ACCOUNTS = {
    "wallet": "Your free {bucket} credits",
    "held": "Your {bucket} credits on hold",
    "spent": "What you spent of {bucket} credits",
    "issued": "What you were given of {bucket} credits",
    "expired": "What expired of {bucket} credits",
}


@dataclass(frozen=True, slots=True)
class VerdictWords:
    heading: str
    sentence: str
    is_sound: bool


def verdict_words(verdict: Verdict, person: Person) -> VerdictWords:
    ledger = verdict.ledger
    counted = f"{_count(ledger.lines, 'line')} and {_count(verdict.receipts, 'receipt')} added up"
    if verdict.is_sound:
        return VerdictWords(f"{counted}.", f"They match each other and your balance: {credits(ledger.balance)}.", True)
    wrong = " ".join(_wrong(verdict, person))
    advice = (
        "Nothing was changed. Until this is put right, new questions may be refused. "
        f"Write to the people who run this server, with the number {person.pk}."
    )
    return VerdictWords(f"{counted}. They do not match.", f"{wrong} {advice}", False)


def _wrong(verdict: Verdict, person: Person) -> Iterator[str]:
    ledger = verdict.ledger
    yield from (_balance(each) for each in ledger.wrong_balances)
    if ledger.unbalanced or ledger.misstated:
        yield _lines(ledger, person)
    if ledger.unresolved:
        yield f"{_count(ledger.unresolved, 'question')} ended twice, or ended and still held credits."
    for run in verdict.disagreeing[:1]:
        others = len(verdict.disagreeing) - 1
        beside = f", and so do {_count(others, 'other')}" if others else ""
        yield f"The receipt of run {run.run_id} says another sum than the ledger{beside}."


def _balance(wrong: WrongBalance) -> str:
    account = _ACCOUNTS[wrong.kind].format(bucket=wrong.bucket)
    return f"{account} stand at {number(wrong.stands)}, but the entries come to {number(wrong.entries)}."


def _lines(ledger: Checkup, person: Person) -> str:
    """A line may be wrong in both ways, so the greater of the two counts is said."""
    since = ""
    if ledger.first_wrong_at is not None:
        since = f", the first on {ledger.first_wrong_at.astimezone(person.zone):%-d %B %Y at %H:%M}"
    return f"{_count(max(ledger.unbalanced, ledger.misstated), 'line')} of the ledger came out wrong{since}."


def _count(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"
