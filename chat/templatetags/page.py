"""Words and marks that templates share."""

from __future__ import annotations

from datetime import datetime, timedelta

import lucide
from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from billing.money import in_cents, in_dollars

register = template.Library()
register.filter("dollars", in_dollars)
register.filter("cents", in_cents)

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS


@register.simple_tag
def icon(name: str) -> SafeString:
    """A decorative icon; what stands beside it or the button's label says what it means."""
    drawing = lucide._render_icon(str(name) + "", None, **{"class": "icon", "aria-hidden": "true"})
    return mark_safe(drawing)


@register.filter
def number(value: int) -> str:
    """With separators, and a true minus."""
    return f"{value:,}".replace("-", "−")


@register.filter
def credits(value: int) -> str:
    return f"{number(value)} credit{'' if abs(value) == 1 else 's'}"


@register.filter
def change(value: int) -> str:
    return f"+{value:,}" if value > 0 else number(value)


@register.filter
def duration(milliseconds: float) -> str:
    """Milliseconds as people say them: 12 ms, 0.4 s, 2 min 5 s."""
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < SECOND_MS / 10:
        return f"{round(milliseconds)} ms"
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / SECOND_MS:.1f} s"
    minutes, seconds = divmod(round(milliseconds / SECOND_MS), 60)
    return f"{minutes} min {seconds} s"


@register.filter
def time_left(span: timedelta) -> str:
    """How long it is until then, as people say it: 12 min, 13 h 11 min, 2 days 4 h."""
    minutes = max(1, round(span.total_seconds() / 60))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} day{'' if days == 1 else 's'}{f' {hours} h' if hours else ''}"
    return f"{hours} h{f' {minutes} min' if minutes else ''}" if hours else f"{minutes} min"


@register.filter
def file_size(count: int) -> str:
    """Bytes as people say them: 640 kB, 2.4 MB, 18 MB, 1 GB."""
    if count < 1_000:
        return f"{count} byte{'' if count == 1 else 's'}"
    if count < 999_500:
        return f"{count / 1_000:.0f} kB"
    size = count / 1_000_000
    if size >= 999.5:
        return f"{size / 1_000:,.1f}".removesuffix(".0") + " GB"
    return f"{size:.1f} MB" if size < 10 else f"{size:,.0f} MB"


@register.filter
def day(moment: datetime) -> str:
    """“today, 09:12” in the zone the moment is in, else its date; the year only when it is another one."""
    now = timezone.now().astimezone(moment.tzinfo)
    if moment.date() == now.date():
        return f"today, {moment:%H:%M}"
    return f"{moment:%-d %B}" if moment.year == now.year else f"{moment:%-d %B %Y}"


@register.filter
def unlocalized(value: float | None) -> str:
    """A number for a machine, every digit of it."""
    return "" if value is None else repr(value)


@register.simple_tag
def meter(used: int, most: int, label: str) -> SafeString:
    """A bar whose length is in attributes, so that no style is needed."""
    share = 100 * min(max(used, 0), most) / most if most else 0
    return format_html(
        '<svg class="meter" role="meter" aria-valuemin="0" aria-valuemax="{}" aria-valuenow="{}" aria-label="{}">'
        '<rect width="{}%" height="100%"/></svg>',
        most,
        min(max(used, 0), most),
        label,
        f"{share:.1f}",
    )
