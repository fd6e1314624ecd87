"""Cards of the vendors that speak OpenAI's protocol, with prices as far as they were published in November 2026."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import migrations, models

# name, strategy, model, thinking, honours a forced tool, context tokens, rank, then the price: input, output, cached
_CARDS = [
    # DeepSeek's peak prices; at other hours it asks for half of them.
    ("DeepSeek Flash", "deepseek", "deepseek-flash", "none", True, 1_000_000, 1, ("0.30", "1.20", "0.006")),
    ("DeepSeek V4 Pro", "deepseek", "deepseek-v4-pro", "enabled", True, 1_000_000, 2, ("1.32", "3.96", "0.044")),
    # What Qwen takes for cached input is not known here, so it counts as fresh.
    ("Qwen 3.8 Max, thinking", "qwen_thinking", "qwen3.8-max", "enabled", False, 1_000_000, None, ("2", "6", "2")),
    ("Qwen Max, thinking", "qwen_thinking", "qwen-max", "enabled", False, 200_000, None, None),
    ("Qwen 3.8 Flash", "qwen_instruct", "qwen3.8-flash", "none", True, 200_000, 1, ("0.15", "0.47", "0.15")),
    ("Qwen 3.8 Max", "qwen_instruct", "qwen3.8-max", "none", True, 1_000_000, 2, ("2", "6", "2")),
    ("Qwen Plus", "qwen_instruct", "qwen-plus", "none", True, 200_000, None, None),
    ("GPT-6 Luna", "openai", "gpt-6-luna", "enabled", True, 1_050_000, 1, ("0.10", "0.50", "0.01")),
    ("GPT-6 Sol", "openai", "gpt-6-sol", "enabled", True, 1_050_000, 2, ("2", "10", "0.20")),
    ("Gemini 3.8 Flash", "gemini", "gemini-3.8-flash", "none", True, 1_000_000, None, ("0.75", "3.75", "0.075")),
    ("Qwen 3 by Ollama", "ollama", "qwen3", "none", False, 40_000, None, ("0", "0", "0")),
    ("llama.cpp", "llama_cpp", "default", "none", False, 40_000, None, ("0", "0", "0")),
]
_STARTS_ON = date(2026, 10, 21)
_GPT_PROMPT_UP_TO = 272_000  # beyond it another price applies, which is not known here
_GPT_CACHE_WRITE = Decimal("1.25")
_GEMINI_2027 = {"starts_on": date(2027, 1, 1), "input": "1.50", "output": "7.50", "cached": "0.15"}


def add_cards(apps, schema_editor):
    Card, Price = apps.get_model("chat", "ModelCard"), apps.get_model("chat", "ModelPrice")
    for name, strategy, model, thinking, honours, context_tokens, rank, price in _CARDS:
        card = Card.objects.create(
            name=name,
            strategy=strategy,
            model=model,
            thinking=thinking,
            honours_forced_tool=honours,
            context_tokens=context_tokens,
            rank=rank,
        )
        if price is not None:
            input, output, cached = price
            is_gpt = strategy == "openai"
            Price.objects.create(
                card=card,
                starts_on=_STARTS_ON,
                prompt_up_to=_GPT_PROMPT_UP_TO if is_gpt else None,
                input=Decimal(input),
                output=Decimal(output),
                cached=Decimal(cached),
                cache_written=Decimal(input) * (_GPT_CACHE_WRITE if is_gpt else 1),
            )
        if strategy == "gemini":
            prices = {field: value if field == "starts_on" else Decimal(value) for field, value in _GEMINI_2027.items()}
            Price.objects.create(card=card, cache_written=prices["input"], **prices)


class Migration(migrations.Migration):
    dependencies = [("chat", "0008_run_is_tainted")]

    operations = [
        migrations.AddField(
            model_name="modelcard",
            name="stands_in_anywhere",
            field=models.BooleanField(default=False, help_text="Also for models of other vendors."),
        ),
        migrations.AlterField(
            model_name="modelcard",
            name="thinking",
            field=models.CharField(
                choices=[(way, way) for way in ("none", "adaptive", "manual", "enabled")], default="none", max_length=10
            ),
        ),
        migrations.RunPython(add_cards, migrations.RunPython.noop),
    ]
