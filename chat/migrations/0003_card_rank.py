"""Which models stand in for another one, and in which order: the small ones, cheapest first, then Sonnet."""

from __future__ import annotations

from django.db import migrations, models

_RANKS = {"claude-haiku-5-5": 1, "claude-haiku-4-5-20251001": 2, "claude-sonnet-5-5": 3}


def rank_cards(apps, schema_editor):
    for model, rank in _RANKS.items():
        apps.get_model("chat", "ModelCard").objects.filter(strategy="anthropic", model=model).update(rank=rank)


class Migration(migrations.Migration):
    dependencies = [("chat", "0002_model_cards")]

    operations = [
        migrations.AddField(
            model_name="modelcard",
            name="rank",
            field=models.PositiveSmallIntegerField(
                blank=True, null=True, help_text="When it stands in; empty: never."
            ),
        ),
        migrations.RunPython(rank_cards, migrations.RunPython.noop),
    ]
