"""What a person can do with what they have, and what comes next, in a sentence or two."""

from __future__ import annotations

from datetime import datetime

from billing.plans import plan_of
from billing.pricing import BASE
from chat.templatetags.page import credits, number, time_left
from chat.views.purse import LimitView, PurseView
from klerai.accounts.models import Person


def outlook_for(person: Person, purse: PurseView, *, now: datetime) -> str:
    if not person.is_verified:
        return f"Confirm your e-mail address, and today’s {number(purse.day.max)} credits are yours."
    if purse.left >= BASE and purse.daily:
        questions = purse.left // BASE
        plural = "" if questions == 1 else "s"
        return f"Enough for up to {number(questions)} plain question{plural}. Today’s credits go first, packs last."
    sentences = [f"A question costs from {BASE}."] if purse.daily else [_spent(purse.binding, purse)]
    if not purse.daily and purse.left >= BASE:
        sentences.append("Answers now draw on your packs.")
    if coming := _coming(person, purse, now=now):
        sentences.append(coming)
    return " ".join(sentences)


def _spent(limit: LimitView, purse: PurseView) -> str:
    if limit.name == "daily":
        return f"Today’s {number(limit.used)} credits are used."
    starts = f"{limit.resets_at:%-d %B at %H:%M}, {purse.zone}"
    return f"This month’s {credits(limit.max)} are used; the next {number(limit.max)} start on {starts}."


def _coming(person: Person, purse: PurseView, *, now: datetime) -> str:
    """What the next midnight brings: the plan's credits of a day, or what the month still holds of them."""
    at = purse.day.resets_at
    most = plan_of(person, now=at).daily_credits
    comes = min([most, *(limit.left for limit in purse.limits[1:] if limit.resets_at > at)])
    when = f"At {at:%H:%M}, {purse.zone}, in {time_left(at - now)}, {number(comes)} more come"
    if comes == most:
        return f"{when}."
    return f"{when}, not {number(most)}: that is what this month still holds." if comes else ""
