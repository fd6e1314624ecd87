"""A receipt in words: what a question cost, why, and from what it was taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from billing.pricing import Quote
from chat.models import Run
from chat.profiles import PROFILES
from chat.quotes import quote_of
from chat.templatetags.page import credits, duration
from chat.views.tool_words import plain_name

_USED_WORDS = {"github": ("GitHub call", "GitHub calls"), "tool": ("tool", "tools")}
_STEP_WORDS = {"first_text": "First word", "total": "From question to receipt"}


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    words: str
    note: str
    ref: str
    quantity: int
    unit_price: int
    credits: int


@dataclass(frozen=True, slots=True)
class Step:
    """How long one part of a run took; `share` is its part of the longest, in percent."""

    words: str
    milliseconds: float
    share: str


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """What a receipt says. `line` is the whole of it in one line."""

    url: str
    line: str
    credits: int
    lines: tuple[ReceiptLine, ...]
    before: int | None
    after: int | None
    daily: int
    pack: int
    split_words: str
    model: str
    tokens: Mapping[str, int]
    cost_usd: str
    turns: int
    steps: tuple[Step, ...]
    quote: Quote


def receipt_of(run: Run, tools: Mapping[str, str]) -> ReceiptView | None:
    """The receipt of an ended run; `tools` says which tool a reference means. None while the run goes on."""
    if run.receipt is None:
        return None
    receipt = run.receipt
    split = receipt["bucket_split"]
    return ReceiptView(
        url=reverse("receipt", args=[run.run_id]),
        line=_line(run, receipt),
        credits=receipt["credits"],
        lines=tuple(_receipt_line(line, tools) for line in receipt["lines"]),
        before=receipt.get("balance_before"),
        after=receipt.get("balance_after"),
        daily=split["daily"],
        pack=split["pack"],
        split_words=_split_words(split["daily"], split["pack"]),
        model=receipt.get("model") or "",
        tokens=receipt.get("tokens") or {},
        cost_usd=_dollars(receipt.get("cost_usd")),
        turns=receipt.get("turns") or 0,
        steps=_steps(receipt.get("timings_ms") or {}),
        quote=_quote(run, receipt),
    )


def _quote(run: Run, receipt: Mapping[str, Any]) -> Quote:
    """What was said before the question; the oldest receipts do not say it themselves."""
    if "quote" in receipt:
        return Quote(**receipt["quote"])
    return quote_of(PROFILES[run.mode], ceiling=run.ceiling_credits)


def _line(run: Run, receipt: Mapping[str, Any]) -> str:
    parts = [credits(receipt["credits"])]
    match run.state:
        case Run.State.STOPPED:
            parts.append("stopped by you")
        case Run.State.COMPLETED:
            parts += _used(receipt["lines"], closing=PROFILES[run.mode].closing_tool)
        case _:
            parts.append("failed, not charged" if not receipt["credits"] else "failed")
    if run.ended_at is not None:
        parts.append(duration((run.ended_at - run.created_at).total_seconds() * 1000))
    return " · ".join(parts)


def _used(lines: list[Mapping[str, Any]], *, closing: str | None) -> list[str]:
    """What was used for the answer; the tool that gave it is not counted."""
    counts = Counter[str]()
    for line in lines:
        if closing is None or line.get("note") != closing:
            counts[line["item"]] += line["quantity"]
    named = ["documentation"] if counts["documentation"] else []
    return named + [f"{counts[item]} {words[counts[item] != 1]}" for item, words in _USED_WORDS.items() if counts[item]]


def _receipt_line(line: Mapping[str, Any], tools: Mapping[str, str]) -> ReceiptLine:
    ref, note = line.get("ref") or "", line.get("note") or ""
    return ReceiptLine(
        words=_line_words(line["item"], tools.get(ref, "")),
        note=note.removeprefix(tools.get(ref) or " ").strip(),
        ref=ref,
        quantity=line["quantity"],
        unit_price=line["unit_price"],
        credits=line["credits"],
    )


def _line_words(item: str, tool: str) -> str:
    match item:
        case "documentation":
            return "Documentation, once a question"
        case _ if tool:
            return plain_name(tool)
        case "github":
            return "GitHub"
        case "ceiling":
            return "Over the ceiling"
        case _:
            return "Question"


def _split_words(daily: int, pack: int) -> str:
    match (daily, pack):
        case (0, 0):
            return "Nothing was taken"
        case (_, 0):
            return "From today’s credits"
        case (0, _):
            return "From packs"
        case _:
            return f"{daily} from today, {pack} from packs"


def _dollars(cost: str | float | None) -> str:
    return "" if not cost else f"${float(cost):.4f}"


def _steps(timings: Mapping[str, float]) -> tuple[Step, ...]:
    most = max(timings.values(), default=0) or 1
    return tuple(
        Step(_STEP_WORDS.get(name, name.replace("_", " ").capitalize()), took, f"{100 * took / most:.1f}%")
        for name, took in timings.items()
    )
