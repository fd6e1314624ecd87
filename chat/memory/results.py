"""The step inside a long run: old tool results give way to their summaries, all at once."""

from __future__ import annotations

from dataclasses import replace

from chat.memory.summary import mechanical
from chat.messages import Message, ToolResult, ToolResults

KEPT_TURNS = 1
BUDGET_TOKENS = 500
_CHARACTERS_A_TOKEN = 4


def fold_results(messages: list[Message], *, since: int, budget_tokens: int = BUDGET_TOKENS) -> bool:
    """Replace the results of all turns but the last by summary and ID, once together they pass the budget.

    `since` is where this run begins in `messages`; whether anything was replaced. A call keeps its result, and what
    was replaced can be read whole by its ID.
    """
    turns = [(place, turn) for place, turn in enumerate(messages) if place >= since and isinstance(turn, ToolResults)]
    old = turns[:-KEPT_TURNS]
    whole = sum(len(result.text) for _, turn in old for result in turn.results if not result.is_summary)
    if whole <= budget_tokens * _CHARACTERS_A_TOKEN:
        return False
    for place, turn in old:
        messages[place] = ToolResults(tuple(map(_folded, turn.results)))
    return True


def _folded(result: ToolResult) -> ToolResult:
    summary = None if result.is_summary or not result.ref else mechanical(result.text)
    if summary is None:
        return result
    return replace(result, text=summary, is_summary=True)
