"""The range a question of a mode can cost: at least its base, and the tool the mode always begins with."""

from __future__ import annotations

from billing.pricing import BASE, Quote, price_of
from chat.errors import Refusal
from chat.profiles import Profile


def least_of(profile: Profile) -> int:
    if profile.opening_tool is None:
        return BASE
    return BASE + price_of("", tool=profile.opening_tool).credits


def quote_of(profile: Profile, *, ceiling: int) -> Quote:
    """The range a question is promised to cost."""
    return Quote(at_least=least_of(profile), at_most=ceiling)


def check_ceiling(profile: Profile, quote: Quote) -> None:
    """Raises Refusal where a mode that always begins with a tool could not even pay for that."""
    least = least_of(profile)
    if quote.at_most < least:
        message = (
            f"A question in {profile.title} costs at least {least} credits, and its ceiling is {quote.at_most}. "
            "Nothing was charged. Raise the ceiling, or ask in another mode."
        )
        raise Refusal("invalid", message, status=400, fields={"max_credits": [message]})
