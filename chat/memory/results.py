"""The step inside a long run: old tool results give way to their summaries, the oldest summaries to a few words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chat.memory.summary import cut, mechanical
from chat.messages import Message, ToolResult, ToolResults

WHOLE_TURNS, SUMMARISED_TURNS = 1, 3
BUDGET_TOKENS = 300
_CHARACTERS_A_TOKEN = 4
_FEW_WORDS = 60


def fold_results(messages: list[Message], *, since: int, budget_tokens: int = BUDGET_TOKENS) -> bool:
    """Shorten old results, all at once when together they pass the budget; whether anything was shortened.

    `since` is where this run begins in `messages`. The last turn's results stay whole, those of the two before it
    become summaries, older ones a few words. A call keeps its result, and what was shortened can be read whole by
    its ID.
    """
    turns = [place for place, turn in enumerate(messages) if place >= since and isinstance(turn, ToolResults)]
    budget = budget_tokens * _CHARACTERS_A_TOKEN
    folded = _shorten(messages, turns[:-WHOLE_TURNS], _summarised, budget=budget)
    return _shorten(messages, turns[:-SUMMARISED_TURNS], _in_a_few_words, budget=budget) or folded


def _shorten(
    messages: list[Message], places: list[int], shortened: Callable[[ToolResult], ToolResult], *, budget: int
) -> bool:
    """Shorten the results at these places if those that can be shortened hold more characters than the budget."""
    old = {place: turn.results for place in places if isinstance(turn := messages[place], ToolResults)}
    new = {place: tuple(map(shortened, results)) for place, results in old.items()}
    pairs = ((was, now) for place in old for was, now in zip(old[place], new[place], strict=True))
    if sum(len(was.text) for was, now in pairs if now is not was) <= budget:
        return False
    messages[:] = [ToolResults(new[place]) if place in new else turn for place, turn in enumerate(messages)]
    return True


def _summarised(result: ToolResult) -> ToolResult:
    summary = None if result.is_summary or not result.ref else mechanical(result.text)
    return result if summary is None else replace(result, text=summary, is_summary=True)


def _in_a_few_words(result: ToolResult) -> ToolResult:
    if not result.ref or len(result.text) <= _FEW_WORDS + 1:
        return result
    return replace(result, text=cut(result.text, _FEW_WORDS), is_summary=True)
