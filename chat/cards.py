"""Model cards as rows: which one a strategy drives, and what a call with it costs us."""

from __future__ import annotations

import time
from collections.abc import Container
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache

from django.db.models import F, Q

from chat.messages import Usage
from chat.models import ModelCard, ModelPrice
from chat.strategies.base import Card
from chat.strategies.vendors import BY_STRATEGY, RENAMED

MOST_STAND_INS = 2
_MILLION = Decimal(1_000_000)


def cards_for(strategy: str, model: str, *, reachable: Container[str] = ()) -> list[Card]:
    """The card of a model, and those that stand in for it, by their rank.

    These are the strategy's other cards with a rank, and cards of other strategies that an operator lets stand in
    anywhere, as far as they are `reachable`.
    """
    first = card_for(strategy, model)
    ranked = ModelCard.objects.filter(Q(strategy=strategy) | Q(stands_in_anywhere=True), rank__isnull=False)
    others = ranked.exclude(strategy=strategy, model=first.model).order_by("rank", "name")
    found = [_card(row) for row in others if row.strategy == strategy or row.strategy in reachable]
    return [first, *found[:MOST_STAND_INS]]


def card_for(strategy: str, model: str) -> Card:
    """The card of a model, by a name it has or had; one without a row can be used too, its price is then unknown."""
    model, thinking = RENAMED.get((strategy, model), (model, None))
    row = ModelCard.objects.filter(strategy=strategy, model=model).first()
    vendor = BY_STRATEGY.get(strategy)
    honours = vendor is None or vendor.honours_forced_tool
    card = _card(row) if row is not None else Card(model, strategy, model, honours_forced_tool=honours)
    return card if thinking is None else replace(card, thinking=thinking)


def _card(row: ModelCard) -> Card:
    return Card(row.name, row.strategy, row.model, row.thinking, row.honours_forced_tool)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one model call, for its cost; the band of a price goes by the size of each prompt."""

    strategy: str
    model: str
    usage: Usage


def cost_usd(calls: list[Spent], *, on: date) -> Decimal | None:
    """What the calls cost by the prices of that day, in US dollars. None when a price is not known."""
    sums = Decimal(0)
    for call in calls:
        price = _price(_bands(call.strategy, call.model, on, int(time.time() // 60)), call.usage)
        if price is None:
            return None
        fresh = call.usage.input - call.usage.cached - call.usage.cache_written
        sums += (
            fresh * price.input
            + call.usage.cached * price.cached
            + call.usage.cache_written * price.cache_written
            + call.usage.output * price.output
        ) / _MILLION
    return sums


@lru_cache(maxsize=64)
def _bands(strategy: str, model: str, on: date, minute: int) -> tuple[ModelPrice, ...]:
    """The prices of a model that had begun by that day, newest and smallest band first; read anew every minute."""
    prices = ModelPrice.objects.filter(card__strategy=strategy, card__model=model, starts_on__lte=on)
    return tuple(prices.order_by("-starts_on", F("prompt_up_to").asc(nulls_last=True)))


def _price(bands: tuple[ModelPrice, ...], usage: Usage) -> ModelPrice | None:
    newest = [band for band in bands if band.starts_on == bands[0].starts_on]
    return next((band for band in newest if band.prompt_up_to is None or usage.input <= band.prompt_up_to), None)
