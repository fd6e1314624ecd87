"""Words and marks that templates share."""

from __future__ import annotations

import lucide
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

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
