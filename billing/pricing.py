"""The one price table: quote, hold, charge, receipt and documentation all read it here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from billing.errors import BadAmount
from klerai.accounts.models import Person

Item = Literal["base", "documentation", "github", "tool", "failed", "blocked", "ceiling"]

BASE = 5
DOCUMENTATION = 10
GITHUB = 3
TOOL = 2
HIGHEST_CEILING = 1000

FREE_TOOLS = frozenset(
    {
        "generate_response",
        "index_keywords",
        "find_tools",
        "start_draft",
        "add_draft_action",
        "remove_draft_action",
        "preview_draft",
    }
)


@dataclass(frozen=True, slots=True)
class Price:
    item: Item
    credits: int


@dataclass(frozen=True, slots=True)
class Quote:
    at_least: int
    at_most: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a receipt. What a run is charged is the sum of `credits`."""

    item: Item
    ref: str | None
    quantity: int
    unit_price: int
    credits: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PriceLabel:
    """A price in words, for the pricing page and the documentation."""

    item: Item
    credits: int
    label: str
    explanation: str


PRICE_LIST = (
    PriceLabel("base", BASE, "Question", "every answered question"),
    PriceLabel("documentation", DOCUMENTATION, "Documentation", "once a question, however often it is read"),
    PriceLabel("github", GITHUB, "GitHub", "each call that succeeds"),
    PriceLabel("tool", TOOL, "Any other tool", "each call that succeeds"),
    PriceLabel("failed", 0, "Failed", "an answer or a call that failed"),
    PriceLabel("blocked", 0, "Blocked", "what a safety check, a rule or you refused"),
    PriceLabel("ceiling", 0, "Over the ceiling", "what did not run because the question's ceiling was reached"),
)


def price_of(category: str, *, tool: str = "", already_documented: bool = False) -> Price:
    """What one successful call costs; documentation costs nothing once the run has paid for it."""
    if tool in FREE_TOOLS:
        return Price("tool", 0)
    match category:
        case "documentation":
            return Price("documentation", 0 if already_documented else DOCUMENTATION)
        case "github":
            return Price("github", GITHUB)
        case _:
            return Price("tool", TOOL)


def base_line(ref: str | None = None) -> Line:
    return Line("base", ref, 1, BASE, BASE)


def charged(price: Price, *, ref: str, note: str | None = None) -> Line:
    return Line(price.item, ref, 1, price.credits, price.credits, note)


def not_charged(item: Literal["failed", "blocked", "ceiling"], *, unit_price: int, ref: str | None, note: str) -> Line:
    """A line of 0 that says what would have cost something and why it does not."""
    return Line(item, ref, 1, unit_price, 0, note)


def total(lines: Iterable[Line]) -> int:
    return sum(line.credits for line in lines)


def quote(person: Person, *, max_credits: int | None = None) -> Quote:
    """The range a question can cost; the person's own ceiling binds unless they ask for less.

    Raises BadAmount when `max_credits` does not cover a question.
    """
    if max_credits is None:
        return Quote(at_least=BASE, at_most=person.ceiling_credits)
    if type(max_credits) is not int or not BASE <= max_credits <= HIGHEST_CEILING:
        raise BadAmount(max_credits, at_least=BASE, at_most=HIGHEST_CEILING)
    return Quote(at_least=BASE, at_most=min(person.ceiling_credits, max_credits))
