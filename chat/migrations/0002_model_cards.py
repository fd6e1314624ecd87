"""The models known today, with the prices of their vendors' pages (platform.claude.com/docs, November 2026)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import migrations

# name, strategy, model, thinking, context tokens, then bands of (prompt up to, input, output, cached)
_CARDS = [
    ("Offline", "offline", "offline", "none", 200_000, [(None, "0", "0", "0")]),
    ("Claude Haiku 4.5", "anthropic", "claude-haiku-4-5-20251001", "none", 200_000, [(None, "1", "5", "0.10")]),
    (
        "Claude Haiku 5.5",
        "anthropic",
        "claude-haiku-5-5",
        "adaptive",
        1_000_000,
        [(100_000, "0.10", "0.50", "0.01"), (None, "0.50", "2.50", "0.05")],
    ),
    ("Claude Sonnet 5.5", "anthropic", "claude-sonnet-5-5", "adaptive", 1_000_000, [(None, "2", "10", "0.10")]),
    ("Claude Opus 5.5", "anthropic", "claude-opus-5-5", "adaptive", 1_000_000, [(None, "4", "20", "0.40")]),
    ("Claude Fable 5.1", "anthropic", "claude-fable-5-1", "adaptive", 1_000_000, [(None, "10", "50", "1")]),
]
_STARTS_ON = date(2026, 10, 21)
_CACHE_WRITE = Decimal("1.25")  # times the price of input, for the five-minute cache


def add_cards(apps, schema_editor):
    Card, Price = apps.get_model("chat", "ModelCard"), apps.get_model("chat", "ModelPrice")
    for name, strategy, model, thinking, context_tokens, bands in _CARDS:
        card = Card.objects.create(
            name=name, strategy=strategy, model=model, thinking=thinking, context_tokens=context_tokens
        )
        for prompt_up_to, input, output, cached in bands:
            Price.objects.create(
                card=card,
                starts_on=_STARTS_ON,
                prompt_up_to=prompt_up_to,
                input=Decimal(input),
                output=Decimal(output),
                cached=Decimal(cached),
                cache_written=Decimal(input) * _CACHE_WRITE,
            )


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial")]

    operations = [migrations.RunPython(add_cards, migrations.RunPython.noop)]
