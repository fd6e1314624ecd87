"""What a question of a mode costs at least: its base, and the tool the mode always begins with."""

from __future__ import annotations

from billing.pricing import BASE, Quote, price_of
from chat.profiles import Profile


def least_of(profile: Profile) -> int:
    if profile.opening_tool is None:
        return BASE
    return BASE + price_of("", tool=profile.opening_tool).credits


def quote_of(profile: Profile, *, ceiling: int) -> Quote:
    """The range that was promised. A ceiling below the least is kept: such a question ends without being charged."""
    return Quote(at_least=min(least_of(profile), ceiling), at_most=ceiling)
