"""What was spent, drawn: the bars of a chart as numbers for its template, and the parts in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from chat.profiles import PROFILES
from chat.spending import Day, Part, Spending
from chat.views.tool_words import plain_name

By = Literal["day", "mode", "tool"]
BASELINE, TALLEST = 108.0, 90.0  # in pixels from the top of the drawing, and upwards from there
GAP = 1.0
_DELETED = "Deleted conversations"


@dataclass(frozen=True, slots=True)
class Bar:
    """A day. Places along the drawing are in percent, heights in pixels; packs stand on the daily credits."""

    x: str
    width: str
    middle: str
    daily_y: str
    daily_height: str
    pack_y: str
    pack_height: str
    day: Day
    is_today: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """`tick_y` is the height of the plan's daily credits, where it is within the drawing."""

    bars: tuple[Bar, ...]
    tick: int
    tick_y: str
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    """A mode or a tool; `share` is its part of the dearest one, in percent."""

    words: str
    credits: int
    count: int
    share: str


def chart_of(spending: Spending, *, daily_credits: int) -> Chart:
    days = spending.days
    most = max(daily_credits, *(day.credits for day in days), 1)
    return Chart(
        bars=tuple(_bar(place, day, days, most) for place, day in enumerate(days)),
        tick=daily_credits,
        tick_y=f"{BASELINE - TALLEST * daily_credits / most:.1f}",
        label=f"Credits used on each of the last {len(days)} days, {_span(days[0].date, days[-1].date)}",
    )


def modes_of(spending: Spending) -> tuple[Row, ...]:
    return _rows(spending.modes, lambda name: PROFILES[name].title if name in PROFILES else name.capitalize())


def tools_of(spending: Spending) -> tuple[Row, ...]:
    named = {"base": "Questions themselves", "documentation": "Documentation"}
    return _rows(spending.tools, lambda name: named.get(name) or plain_name(name))


def _bar(place: int, day: Day, days: Sequence[Day], most: int) -> Bar:
    slot = 100 / len(days)
    width = slot * 0.6
    x = place * slot + (slot - width) / 2
    daily, pack = TALLEST * day.daily / most, TALLEST * day.pack / most
    lifted = daily + GAP if daily and pack else daily
    return Bar(
        x=f"{x:.2f}%",
        width=f"{width:.2f}%",
        middle=f"{x + width / 2:.2f}%",
        daily_y=f"{BASELINE - daily:.1f}",
        daily_height=f"{daily:.1f}",
        pack_y=f"{BASELINE - lifted - pack:.1f}",
        pack_height=f"{pack:.1f}",
        day=day,
        is_today=place == len(days) - 1,
    )


def _rows(parts: Iterable[Part], words: Callable[[str], str]) -> tuple[Row, ...]:
    parts = tuple(parts)
    most = max((part.credits for part in parts), default=1)
    return tuple(
        Row(words(part.name) if part.name else _DELETED, part.credits, part.count, f"{100 * part.credits / most:.1f}%")
        for part in parts
    )


def _span(first: date, last: date) -> str:
    start = f"{first:%-d}" if (first.year, first.month) == (last.year, last.month) else f"{first:%-d %B}"
    return f"{start} to {last:%-d %B}"
