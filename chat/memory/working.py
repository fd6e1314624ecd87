"""The working messages: what a model is sent of the past, in the order it happened.

Each item stands under its ID, short ones whole and long ones as their summary. Older questions fold into a line
each, in steps, so that between two folds the beginning of every prompt stays the same to the byte and a vendor's cache
holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chat.marks import marked, marked_summary
from chat.messages import AssistantMessage, Message, UserMessage

NO_ANSWER = "[There was no answer to this.]"
FOLDED = "Earlier in this conversation, a line for each question. Everything can be read whole by its ID."
FOUND = "Found for this question:"
STEP = 5
MOST_LINES = 40
_LINE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Remembered:
    """An item of the past. `summary` is None when the content is short enough to be its own."""

    ref: str
    content: str
    summary: str | None = None
    tool: str = ""  # with its arguments, as far as they fit a line

    @property
    def sent(self) -> str:
        return self.content if self.summary is None else self.summary

    @property
    def line(self) -> str:
        """The item under its ID, as it is sent."""
        kind = "" if not self.tool else f"{self.tool}: " if self.summary is None else f"tool summary, {self.tool}: "
        if self.summary is None:
            return marked(self.ref, f"{kind}{self.content}")
        return marked_summary(self.ref, f"{kind}{self.summary}")


@dataclass(frozen=True, slots=True)
class PastRun:
    """A question of the past with what was found and answered; `response` is None when there was no answer."""

    query: Remembered
    tools: tuple[Remembered, ...] = ()
    response: Remembered | None = None

    @property
    def items(self) -> tuple[Remembered, ...]:
        return (self.query, *self.tools, *([self.response] if self.response else []))


def folded(runs: int, *, window: int) -> int:
    """How many of the oldest runs are folded. `window` counts messages, two a run.

    When the window holds 10 messages more than its size, what is over folds at once: 5 runs at a time.
    """
    return max(0, (runs - window // 2) // STEP * STEP)


def reach(window: int) -> int:
    """How many of the newest runs working messages are made of, at the most."""
    return window // 2 + STEP + MOST_LINES


def working_messages(past: Sequence[PastRun], *, window: int, before: int = 0) -> list[Message]:
    """The summarised track: fold lines of the oldest runs, then question and answer of each run of the window.

    `before` counts the runs that came before those in `past`, which are out of reach of a line of their own.
    """
    old = folded(before + len(past), window=window) - before
    messages: list[Message] = []
    if old > 0:
        messages.append(UserMessage(fold_text(past[:old], before=before)))
    for run in past[max(0, old) :]:
        messages.append(UserMessage(_asked(run)))
        messages.append(AssistantMessage(run.response.line if run.response else NO_ANSWER))
    return messages


def fold_text(past: Sequence[PastRun], *, before: int = 0) -> str:
    """The lines of the folded runs, as many of the newest as there may be."""
    unsaid = before + max(0, len(past) - MOST_LINES)
    lines = [FOLDED]
    if unsaid:
        lines.append(f"({unsaid} more questions came before these; their IDs begin with q1 and q1-r.)")
    return "\n".join([*lines, *map(fold_line, past[-MOST_LINES:])])


def _asked(run: PastRun) -> str:
    if not run.tools:
        return run.query.line
    return "\n".join([run.query.line, "", FOUND, *(tool.line for tool in run.tools)])


def fold_line(run: PastRun) -> str:
    """A whole run in one line, every part of it under its ID."""
    parts = [marked(run.query.ref, _cut(run.query.sent))]
    if run.tools:
        parts.append(f"({_names(run.tools)})")
    parts.append(marked(run.response.ref, _cut(run.response.sent)) if run.response else NO_ANSWER)
    return " → ".join(parts)


def _names(tools: Iterable[Remembered]) -> str:
    return ", ".join(f"{tool.ref} {tool.tool}" for tool in tools)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS].rsplit(' ', 1)[0]}…"
