"""Terms and postings for the search by keyword, and the index by which many vectors are searched."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

# Packed numbers do not become smaller by compression, and reading them should cost a copy. A foreign key would cost an
# eighth of ingestion, and nothing else writes here.
POSTINGS = """
CREATE TABLE retrieval_postingblock (
    term_id bigint NOT NULL,
    number integer NOT NULL,
    postings bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (term_id, number)
);

CREATE FUNCTION retrieval_forget_postings() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM retrieval_postingblock WHERE term_id = ANY (ARRAY(SELECT id FROM gone));
    RETURN NULL;
END $$;
CREATE TRIGGER forget_postings AFTER DELETE ON retrieval_term REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION retrieval_forget_postings();
"""

# Counts of terms change with every document and never sit in an index: room on the page keeps those updates in place.
# Vectors stay beside their rows as long as a page holds them, so that an exact search reads no second table.
STORAGE = """
ALTER TABLE retrieval_term SET (fillfactor = 80);
ALTER TABLE retrieval_keywordstatistics SET (fillfactor = 50);
ALTER TABLE retrieval_window ALTER COLUMN vector SET STORAGE MAIN;
"""

# The role of the application may not make an index, so the owner's function does; it makes this one kind only.
# One process builds it, for the memory two would share is scarce in containers.
INDEX = """
CREATE FUNCTION retrieval_index_windows(embedder text, dimension integer, name text) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT
SET maintenance_work_mem = '256MB' SET max_parallel_maintenance_workers = 0 AS $$
BEGIN
    IF name !~ '^retrieval_window_near_[0-9a-f]{16}$' OR dimension NOT BETWEEN 1 AND 4000 THEN
        RAISE EXCEPTION 'no such index of windows' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON retrieval_window USING hnsw ((vector::halfvec(%s)) halfvec_ip_ops)'
        ' WHERE embedder = %L', name, dimension, embedder);
END $$;
"""

UNDO = """
DROP FUNCTION retrieval_index_windows(text, integer, text);
DROP TABLE retrieval_postingblock;
DROP TRIGGER forget_postings ON retrieval_term;
DROP FUNCTION retrieval_forget_postings();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="IndexedChunk",
            fields=[
                ("chunk", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="+", serialize=False, to="retrieval.chunk")),
                ("knowledge_base", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="retrieval.knowledgebase")),
                ("number", models.IntegerField()),
                ("length", models.PositiveIntegerField()),
                ("term_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
            ],
        ),
        migrations.CreateModel(
            name="KeywordStatistics",
            fields=[
                ("knowledge_base", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="statistics", serialize=False, to="retrieval.knowledgebase")),
                ("chunks", models.PositiveIntegerField(default=0)),
                ("total_length", models.PositiveBigIntegerField(default=0)),
                ("next_number", models.IntegerField(default=0)),
            ],
        ),
        migrations.AddConstraint(
            model_name="indexedchunk",
            constraint=models.UniqueConstraint(fields=("knowledge_base", "number"), include=("chunk",), name="indexed_chunk_number_is_unique"),
        ),
        migrations.CreateModel(
            name="Term",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("lexeme", models.CharField(db_collation="C", max_length=80)),
                ("chunks", models.PositiveIntegerField()),
                ("knowledge_base", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="retrieval.knowledgebase")),
            ],
        ),
        migrations.AddConstraint(
            model_name="term",
            constraint=models.UniqueConstraint(fields=("knowledge_base", "lexeme"), name="term_is_unique"),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="PostingBlock",
                    fields=[
                        ("pk", models.CompositePrimaryKey("term_id", "number", blank=True, editable=False, primary_key=True, serialize=False)),
                        ("number", models.IntegerField()),
                        ("postings", models.BinaryField()),
                        ("term", models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to="retrieval.term")),
                    ],
                ),
            ],
            database_operations=[migrations.RunSQL(POSTINGS + STORAGE + INDEX, UNDO)],
        ),
    ]
