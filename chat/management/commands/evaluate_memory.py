"""Replays recorded agent runs through the memory and says what it saved and what could still be found."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.memory.replay import Replayed, replay
from chat.profiles import DEFAULT_MODE, PROFILES

TOOL_HEAVY = 0.5


class Command(BaseCommand):
    help = "Prints how many prompt tokens memory saves on recorded agent runs, and which needed values stay in reach."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help='JSON lines: {"id", "history": [{"role", "content", …}]}')
        parser.add_argument("--json", action="store_true", help="a line a case and the summary last")

    def handle(self, *args: Any, **options: Any) -> None:
        window = PROFILES[DEFAULT_MODE].window
        cases = [(case, replay(history, window=window)) for case, history in _read(Path(options["file"]))]
        if options["json"]:
            for case, figures in cases:
                self.stdout.write(json.dumps({"id": case, **_case(figures)}))
            self.stdout.write(json.dumps({"summary": _summary([figures for _, figures in cases])}))
            return
        for case, figures in cases:
            self.stdout.write(
                f"{_saved([figures]):6.1%}  {figures.tokens_full:>9,} → {figures.tokens_sent:>9,}  {case}"
            )
        heavy = [figures for _, figures in cases if figures.tool_tokens > TOOL_HEAVY * figures.tokens_full]
        rest = [figures for _, figures in cases if figures.tool_tokens <= TOOL_HEAVY * figures.tokens_full]
        for name, group in (("tool results dominate", heavy), ("dialogue dominates", rest), ("all", heavy + rest)):
            found = _summary(group)
            self.stdout.write(
                f"{name}: {len(group)} runs, {found['saved']:.1%} saved, {found['visible']:.1%} of the values needed "
                f"visible, {found['reachable']:.1%} reachable"
            )


def _read(file: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        cases = [json.loads(line) for line in lines if line.strip()]
        return [(str(case["id"]), list(case["history"])) for case in cases]
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.", returncode=2) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{file} has a line that is no run: {error}.", returncode=2) from error


def _case(figures: Replayed) -> dict[str, int]:
    return {
        "tokens_full": figures.tokens_full,
        "tokens_sent": figures.tokens_sent,
        "values_needed": figures.values_needed,
        "values_visible": figures.values_visible,
        "values_reachable": figures.values_reachable,
    }


def _summary(group: list[Replayed]) -> dict[str, float]:
    needed = sum(figures.values_needed for figures in group)
    visible = sum(figures.values_visible for figures in group)
    reachable = sum(figures.values_reachable for figures in group)
    return {
        "saved": round(_saved(group), 4),
        "visible": round(visible / needed, 4) if needed else 1.0,
        "reachable": round(reachable / needed, 4) if needed else 1.0,
    }


def _saved(group: list[Replayed]) -> float:
    full = sum(figures.tokens_full for figures in group)
    return 1 - sum(figures.tokens_sent for figures in group) / full if full else 0.0
