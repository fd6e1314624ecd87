"""What a run costs: its prices on hold while it runs, its lines when it ends, its receipt for ever."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone

from billing import credits, pricing
from billing.credits import Settlement, Shortfall
from billing.errors import AccountBlocked
from billing.pricing import Line, Price
from chat.cards import Spent, cost_usd
from chat.events import ToolCallResult
from chat.limits import Reached, ceiling_reached
from chat.messages import Usage
from chat.models import Run
from chat.profiles import PROFILES
from chat.quotes import quote_of
from chat.shortage import balance_reached
from chat.strategies.base import Card
from chat.tools.purse import CallEnd, Verdict, Wanted
from klerai.accounts.models import Person
from klerai.database import in_database
from klerai.failpoints import failpoint

_UNPAID = {
    Verdict.CEILING: ("ceiling", "not run: the ceiling of this question was reached"),
    Verdict.BALANCE: ("blocked", "not run: the credits were used up"),
}


@dataclass(slots=True)
class Timings:
    """Milliseconds since the run began, for the receipt."""

    started: float = field(default_factory=time.perf_counter)
    first_text_ms: int | None = None
    retrieval_ms: int | None = None

    def note_retrieval(self) -> None:
        self.retrieval_ms = self.now_ms()

    def note_text(self) -> None:
        if self.first_text_ms is None:
            self.first_text_ms = self.now_ms()

    def now_ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


class Tab:
    """The bill of a run while it runs. It is the toolbox's purse."""

    def __init__(self, person: Person, *, run_key: UUID, query_ref: str, ceiling: int) -> None:
        self.calls: list[Spent] = []
        self.turns = 0
        self.tools: list[dict[str, Any]] = []
        self.timings = Timings()
        self._person = person
        self._run_key = run_key
        self._ceiling = ceiling
        self._lines: list[Line] = [pricing.base_line(query_ref)]
        self._prices: dict[str, Price] = {}
        self._unpaid: dict[str, Verdict] = {}
        self._limits: dict[str, Reached] = {}
        self._held = pricing.BASE
        self._documented = False
        self._history = (0, 0)

    async def hold(self, wanted: Sequence[Wanted]) -> Sequence[Verdict]:
        """Put each price aside before its call runs; in call order, so that the first ones get what is left."""
        return await in_database(self._hold, tuple(wanted))

    def close(self, wanted: Wanted, end: CallEnd) -> int:
        price = self._prices.get(wanted.ref, Price("tool", 0))
        line = self._line(wanted, end, price)
        if line.item == "documentation":
            self._documented = True
        self._lines.append(line)
        return line.credits

    def note_limit(self, reached: Reached) -> None:
        """The first time counts: what it says is what kept the run from going on."""
        self._limits.setdefault(reached.name, reached)

    def note_history(self, *, full: int, sent: int) -> None:
        """Tokens of what was said before, whole and as it was sent."""
        self._history = (full, sent)

    def note_turn(self, turn: int, *, card: Card, usage: Usage) -> None:
        self.turns = turn
        self.calls.append(Spent(card.strategy, card.model, usage))

    def note_call(self, ended: ToolCallResult) -> None:
        self.tools.append({"ref": ended.id, "name": ended.name, "ok": ended.ok, "duration_ms": ended.duration_ms})

    @property
    def is_out_of_credits(self) -> bool:
        """Whether a tool could not run because the balance did not cover it."""
        return Verdict.BALANCE in self._unpaid.values()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines if the run is charged, in the order of the calls."""
        base, *calls = self._lines
        return (base, *sorted(calls, key=lambda line: _call_number(line.ref)))

    def _hold(self, wanted: tuple[Wanted, ...]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for one in wanted:
            price = pricing.price_of(one.category, tool=one.name, already_documented=self._is_documented())
            verdict = self._reserve(one, price)
            self._prices[one.ref] = price
            if verdict is Verdict.GRANTED:
                self._held += price.credits
            else:
                self._unpaid[one.ref] = verdict
            verdicts.append(verdict)
        return verdicts

    def _reserve(self, wanted: Wanted, price: Price) -> Verdict:
        if price.credits == 0:
            return Verdict.GRANTED
        if self._held + price.credits > self._ceiling:
            self.note_limit(ceiling_reached(used=self._held, most=self._ceiling))
            return Verdict.CEILING
        try:
            held = credits.hold(self._person, run_id=self._run_key, amount=price.credits, ref=wanted.ref)
        except AccountBlocked:
            return Verdict.BALANCE
        failpoint("after_tool_hold")
        if isinstance(held, Shortfall):
            self.note_limit(balance_reached(self._person, held))
            return Verdict.BALANCE
        return Verdict.GRANTED

    def _is_documented(self) -> bool:
        pending = any(price.item == "documentation" and price.credits for price in self._prices.values())
        return self._documented or pending

    def _line(self, wanted: Wanted, end: CallEnd, price: Price) -> Line:
        match end:
            case CallEnd.DONE:
                return pricing.charged(price, ref=wanted.ref, note=wanted.name)
            case CallEnd.FAILED:
                note = f"{wanted.name} failed, so it is not charged"
                return pricing.not_charged("failed", unit_price=price.credits, ref=wanted.ref, note=note)
            case CallEnd.BLOCKED:
                note = f"{wanted.name} was not run"
                return pricing.not_charged("blocked", unit_price=price.credits, ref=wanted.ref, note=note)
            case CallEnd.UNCONFIRMED:
                note = f"{wanted.name} was not run: it was not confirmed"
                return pricing.not_charged("blocked", unit_price=price.credits, ref=wanted.ref, note=note)
            case CallEnd.LIMITED:
                note = f"{wanted.name} was not run: the limit of tool calls was reached"
                return pricing.not_charged("blocked", unit_price=price.credits, ref=wanted.ref, note=note)
            case CallEnd.UNPAID:
                item, why = _UNPAID[self._unpaid[wanted.ref]]
                note = f"{wanted.name} {why}"
                return pricing.not_charged(
                    "ceiling" if item == "ceiling" else "blocked", unit_price=price.credits, ref=wanted.ref, note=note
                )

    def facts(self, card: Card) -> Facts:
        """What the receipt says beside money. It looks prices up: call it where the database may be asked."""
        usage = sum((call.usage for call in self.calls), Usage())
        timings = {"total": self.timings.now_ms()}
        if self.timings.retrieval_ms is not None:
            timings["retrieval"] = self.timings.retrieval_ms
        if self.timings.first_text_ms is not None:
            timings["first_text"] = self.timings.first_text_ms
        return Facts(
            model=card.model,
            turns=self.turns,
            tools=tuple(sorted(self.tools, key=lambda tool: _call_number(tool["ref"]))),
            usage=usage,
            cost_usd=cost_usd(self.calls, on=timezone.now().date()),
            timings_ms=timings,
            full_history=self._history[0],
            sent_history=self._history[1],
            limits=tuple(self._limits.values()),
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """What a receipt says beside money: of a finished run from its tab, of a lost one from its rows."""

    model: str = ""
    turns: int = 0
    tools: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None = None
    timings_ms: dict[str, int] = field(default_factory=dict)
    full_history: int = 0
    sent_history: int = 0
    limits: tuple[Reached, ...] = ()


def uncharged(lines: Sequence[Line], *, why: str) -> tuple[Line, ...]:
    """The same lines for a run that costs nothing: each at 0, the first saying why."""
    base, *calls = lines
    first = pricing.not_charged("failed", unit_price=base.unit_price, ref=base.ref, note=why)
    rest = [
        line if line.credits == 0 else Line("failed", line.ref, line.quantity, line.unit_price, 0, line.note)
        for line in calls
    ]
    return (first, *rest)


def receipt(run: Run, *, lines: Sequence[Line], settlement: Settlement, facts: Facts) -> dict[str, Any]:
    """The contract's receipt, with all that it says written out, so that it stays true when prices change.

    Its lines add up to `settlement.credits`, which is what the ledger says.
    """
    usage = facts.usage
    return {
        "run_id": str(run.run_id),
        "mode": run.mode,
        "model": facts.model,
        "quote": asdict(quote_of(PROFILES[run.mode], ceiling=run.ceiling_credits)),
        "lines": [_line_json(line) for line in lines],
        "credits": settlement.credits,
        "bucket_split": {"daily": settlement.daily, "pack": settlement.pack},
        "balance_before": settlement.balance_before,
        "balance_after": settlement.balance_after,
        "tokens": {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "full_history": facts.full_history,
            "sent_history": facts.sent_history,
        },
        "cost_usd": None if facts.cost_usd is None else float(round(facts.cost_usd, 6)),
        "timings_ms": facts.timings_ms,
        "turns": facts.turns,
        "tools": list(facts.tools),
        "safety": [],
        "limits": [reached.as_json() for reached in facts.limits],
    }


def _line_json(line: Line) -> dict[str, Any]:
    written = {
        "item": line.item,
        "ref": line.ref,
        "quantity": line.quantity,
        "unit_price": line.unit_price,
        "credits": line.credits,
        "note": line.note,
    }
    return {name: value for name, value in written.items() if value is not None}


def _call_number(ref: str | None) -> int:
    return int(ref.rpartition("-t")[2]) if ref and "-t" in ref else 0
