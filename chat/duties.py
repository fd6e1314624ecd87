"""What a run owes: the tools its mode opens and closes with, and those that one tool makes another's duty.

The duties are data of the profile and of the tools. A duty that a model forgets is asked for once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chat.errors import DutyMissed, FaultKind, ModelFault
from chat.messages import ToolCall
from chat.profiles import Profile
from chat.tools.base import Tool
from chat.tools.purse import CallEnd
from chat.tools.refusals import Refused

MISSING, FAILED = "mandatory_tool_missing", "response_tool_failed"


@dataclass(frozen=True, slots=True)
class Orders:
    """What holds for one turn.

    `must_call` names a tool that has to be used, `closing` the one an answer may leave through now; with `only_closing`
    no other is offered. `is_silent` says that plain words are no answer.
    """

    must_call: str | None = None
    closing: str | None = None
    only_closing: bool = False
    may_call: bool = True
    is_silent: bool = False
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """The words of the turn are the answer."""


@dataclass(frozen=True, slots=True)
class Act:
    """The calls are run, apart from those that are barred."""

    barred: Mapping[str, Refused] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Correct:
    """The model is told what it forgot, and asked again."""

    words: str


@dataclass(frozen=True, slots=True)
class Close:
    """This call is to be the answer; what else was called beside it is not run."""

    call: ToolCall


Judgement = Over | Act | Correct | Close


class Duties:
    """Asked before each turn what has to be done in it, and after it whether that was done."""

    def __init__(self, profile: Profile, tools: Mapping[str, Tool], *, is_kept: bool = True) -> None:
        self._opening = profile.opening_tool
        self._closing = profile.closing_tool
        self._brings = duties_of(tools) if is_kept else {}
        self._debts: dict[str, None] = {}
        self._asked_again: set[str] = set()

    @property
    def owed(self) -> str:
        """What a run that has no turn left did not come to."""
        return self._opening or self._closing or ""

    def orders(self, *, is_last: bool, is_spent: bool) -> Orders:
        """What holds for the next turn. Raises DutyMissed when what is owed can no longer be done."""
        if self._opening is not None:
            if is_spent:
                raise DutyMissed(MISSING, tool=self._opening)
            return Orders(must_call=self._opening, is_silent=True, is_last=is_last)
        if self._closing is None:
            return Orders(may_call=not is_last and not is_spent, is_last=is_last)
        is_only = is_last or is_spent
        debt = next(iter(self._debts), None)
        is_asked = debt is None or debt in self._asked_again
        is_due = is_only or not self._asked_again.isdisjoint((self._closing, FAILED))
        return Orders(
            must_call=self._closing if is_due else debt if is_asked else None,
            closing=self._closing if is_only or is_asked else None,
            only_closing=is_only,
            is_silent=True,
            is_last=is_last,
        )

    def judge(self, orders: Orders, calls: Sequence[ToolCall]) -> Judgement:
        """What becomes of a turn. Raises DutyMissed for a duty that was forgotten twice."""
        names = [call.name for call in calls]
        owed = self._opening or (orders.must_call if orders.must_call == self._closing else None)
        if owed is not None and owed not in names:
            return self._ask_again(owed, orders, calls)
        if self._closing is not None and self._closing in names:
            return self._close(orders, calls)
        if not calls:
            return Over() if self._closing is None else self._ask_again(self._closing, orders, calls)
        if not orders.may_call:
            raise ModelFault(FaultKind.MALFORMED, detail="the model called a tool when none was offered")
        return Act()

    def note(self, tool: str, end: CallEnd) -> None:
        """A call has ended. What was refused, for whatever reason, was not done."""
        if tool == self._opening and end in (CallEnd.DONE, CallEnd.FAILED):
            self._opening = None
        if end is CallEnd.DONE:
            self._debts.pop(tool, None)
            if owed := self._brings.get(tool):
                self._debts[owed] = None
                self._asked_again.discard(owed)

    def note_refused(self, orders: Orders, why: Refused) -> None:
        """An answer was not taken. Raises DutyMissed the second time, and where there is no other turn."""
        if orders.is_last or FAILED in self._asked_again:
            raise DutyMissed(FAILED, tool=self._closing or "", reason=why.reason)
        self._asked_again.add(FAILED)

    def _ask_again(self, owed: str, orders: Orders, calls: Sequence[ToolCall]) -> Act | Correct:
        if orders.is_last or owed in self._asked_again:
            raise DutyMissed(MISSING, tool=owed)
        self._asked_again.add(owed)
        step = "before anything else" if owed == self._opening else "giving the answer"
        if not calls:
            return Correct(_CORRECTION.format(step=step, tool=owed))
        barred = Refused(f"not run, because {owed} was not called. Current step: {step}.", f"Call {owed} now.")
        return Act({call.id: barred for call in calls})

    def _close(self, orders: Orders, calls: Sequence[ToolCall]) -> Act | Close:
        answer = next(call for call in calls if call.name == self._closing)
        others = {call.name for call in calls if call is not answer}
        debts = [debt for debt in self._debts if debt not in self._asked_again and debt not in others]
        if orders.closing is None and debts and self._opening is None:
            self._asked_again |= set(debts)
            return Act({answer.id: Refused(f"{' and '.join(debts)} was not called yet.", _FIRST.format(debts[0]))})
        comes_first = answer is calls[0] and orders.closing is not None
        if comes_first or orders.only_closing:
            return Close(answer)
        return Act({answer.id: Refused("it has to be called alone and last.", _ALONE)})


def duties_of(tools: Mapping[str, Tool]) -> dict[str, str]:
    """Which tool owes which other one: what it names in `owes`, where that is there."""
    owes = {name: str(getattr(tool, "owes", "")) for name, tool in tools.items()}
    return {name: owed for name, owed in owes.items() if owed in tools}


_CORRECTION = (
    "<correction>\nYou did not call {tool}, and it has to be called. What you wrote instead was not shown.\n"
    "Current step: {step}\nExpected tool: {tool}\nCall {tool} now, with arguments that fit.\n</correction>"
)
_FIRST = "Call {0} first; then give the same answer again."
_ALONE = "Read the results of the other calls first, then call it again, with nothing beside it."
