from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [("retrieval", "0002_keyword_index")]

    operations = [
        migrations.AddField(
            model_name="document", name="lacks_vectors", field=models.BooleanField(default=False)
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["knowledge_base", "source"], name="document_by_source"),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                fields=["updated_at"], condition=Q(lacks_vectors=True), name="document_without_vectors"
            ),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                fields=["updated_at"], condition=Q(status__in=["queued", "processing"]), name="document_in_progress"
            ),
        ),
        # Files are packed already, more often than not: trying to pack them again costs time and saves nothing.
        migrations.RunSQL(
            "ALTER TABLE retrieval_originalpiece ALTER COLUMN data SET STORAGE EXTERNAL",
            "ALTER TABLE retrieval_originalpiece ALTER COLUMN data SET STORAGE EXTENDED",
        ),
    ]
