"""How deep in its branch a run stands, so that the end of a long conversation is read without its beginning."""

from __future__ import annotations

from django.db import migrations, models

_COUNT = """
WITH RECURSIVE counted AS (
    SELECT id, 1 AS depth FROM chat_run WHERE parent_id IS NULL
    UNION ALL
    SELECT child.id, counted.depth + 1 FROM chat_run child JOIN counted ON child.parent_id = counted.id
)
UPDATE chat_run SET depth = counted.depth FROM counted WHERE chat_run.id = counted.id AND counted.depth > 1
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_card_rank")]

    operations = [
        migrations.AddField(model_name="run", name="depth", field=models.PositiveIntegerField(default=1)),
        migrations.RunSQL(_COUNT, migrations.RunSQL.noop),
    ]
