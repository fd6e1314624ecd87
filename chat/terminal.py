"""A run on a terminal: words as they come, tools and money in between."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from chat.events import (
    ContentChunk,
    ContentReplaced,
    Logged,
    MessageComplete,
    RunFailed,
    StatusUpdate,
    ToolCallResult,
    ToolCallStart,
)
from chat.sources import ORIGINS, confidence_words, section_below


class Terminal:
    """Prints the events of one run. Words go to standard output, everything about them to standard error."""

    def __init__(self) -> None:
        self._words = Console(highlight=False, soft_wrap=True)
        self._notes = Console(stderr=True, highlight=False)
        self._is_mid_line = False

    def show(self, event: Logged) -> None:
        data = event.data
        match event.type:
            case ContentChunk.type:
                self._words.print(data["text"], end="", markup=False)
                self._is_mid_line = not data["text"].endswith("\n")
            case ContentReplaced.type:
                self._note(f"A part was replaced: {data['reason']}")
                self._words.print(data["text"], end="", markup=False)
            case StatusUpdate.type if data["phase"] == "retrying":
                self._note(data["message"])
            case ToolCallStart.type:
                self._note(f"→ {data['label']}  ({data['name']})")
            case ToolCallResult.type:
                cost = f"{data['credits']} credits" if data["ok"] else "not charged"
                self._note(f"  {data['summary']} · {data['duration_ms']} ms · {cost}")
            case MessageComplete.type:
                self._sources(data["citations"], data.get("confidence"))
                self._receipt(data["receipt"])
            case RunFailed.type:
                self._note(data["message"])
                self._receipt(data["receipt"])

    def ask(self, name: str, arguments: dict[str, Any]) -> bool:
        """Whether the person lets the call run, with exactly these arguments."""
        self._note(f"{name} waits for you. It would run with:\n{json.dumps(arguments, indent=2, ensure_ascii=False)}")
        return input("Send this once? [y/N] ").strip().lower() in ("y", "yes")

    def _sources(self, citations: list[dict[str, Any]], confidence: float | None) -> None:
        for citation in citations:
            section = section_below(citation["title"], citation["section"])
            place = " › ".join(filter(None, (citation["title"], section)))
            self._note(f"[{citation['n']}] {place} ({ORIGINS[citation['origin']]})")
        if confidence is not None:
            self._note(confidence_words(confidence))

    def _receipt(self, receipt: dict[str, Any]) -> None:
        self._end_line()
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for line in receipt["lines"]:
            table.add_row(
                line["item"], escape(line.get("ref") or ""), str(line["credits"]), escape(line.get("note") or "")
            )
        self._notes.print(table)
        for reached in receipt["limits"]:
            self._notes.print(reached["message"], markup=False)
        self._notes.print(f"{receipt['credits']} credits · {receipt['balance_after']} left")

    def _note(self, text: str) -> None:
        self._end_line()
        self._notes.print(text, style="dim", markup=False)

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._words.print()
            self._is_mid_line = False
