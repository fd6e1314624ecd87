"""Too few credits: which limit keeps them so few, when more come and what to do, in words and in fields."""

from __future__ import annotations

from typing import Any

from billing import shop
from billing.credits import Shortfall
from chat.errors import Refusal
from chat.limits import Reached
from klerai.accounts.models import Person

UPGRADE_URL = "/billing/"


def insufficient_credits(person: Person, shortfall: Shortfall) -> Refusal:
    """The 402 of the contract. Nothing was stored."""
    return Refusal(
        "insufficient_credits",
        f"{what_is_short(shortfall)} {what_binds(person, shortfall)} Nothing was charged.",
        status=402,
        **shortfall_json(shortfall),
    )


def shortfall_json(shortfall: Shortfall) -> dict[str, Any]:
    limit = shortfall.limit
    resets_at = limit.resets_at.isoformat()
    return {
        "balance": shortfall.balance,
        "required": shortfall.required,
        "limit": {"name": limit.name, "used": limit.used, "max": limit.max, "resets_at": resets_at},
        "resets_at": resets_at,
        "upgrade_url": UPGRADE_URL,
    }


def what_is_short(shortfall: Shortfall) -> str:
    words = f"You have {shortfall.balance:,} credits; a question needs {shortfall.required}."
    if shortfall.held:
        words += f" {shortfall.held:,} more are on hold for what is being answered."
    return words


def what_binds(person: Person, shortfall: Shortfall) -> str:
    """The limit by its name, when it opens again, and what to do until then."""
    limit = shortfall.limit
    if not person.is_verified:
        return f"Confirm your e-mail address, and today’s {limit.max:,} credits are yours."
    at, way_out = limit.resets_at, " Packs work now." if shop.is_open() else ""
    if limit.name == "period":
        return (
            f"{limit.used:,} of this period’s {limit.max:,} credits are used; the next {limit.max:,} begin on "
            f"{at:%-d %B at %H:%M}, {at.tzinfo}.{way_out}"
        )
    return (
        f"{limit.used:,} of today’s {limit.max:,} credits are used; your day begins anew at {at:%H:%M}, {at.tzinfo}."
        f"{way_out}"
    )


def balance_reached(person: Person, shortfall: Shortfall) -> Reached:
    """For a run that goes on without the tools it cannot pay."""
    limit = shortfall.limit
    message = f"Your credits were used up, so no more tools were used. {what_binds(person, shortfall)}"
    return Reached(limit.name, limit.used, limit.max, message, limit.resets_at)
