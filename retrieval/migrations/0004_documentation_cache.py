from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0003_ingestion'),
    ]

    operations = [
        migrations.CreateModel(
            name='LibrarySearch',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('libraries', models.JSONField()),
                ('fetched_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['fetched_at'], name='library_search_by_age')],
            },
        ),
        migrations.CreateModel(
            name='LibraryText',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('library', models.CharField(max_length=300)),
                ('sections', models.JSONField()),
                ('terms', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('left_out', models.PositiveIntegerField(default=0)),
                ('fetched_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['library'], name='library_text_of_a_library'), models.Index(fields=['fetched_at'], name='library_text_by_age')],
            },
        ),
        migrations.CreateModel(
            name='LibraryVectors',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('embedder', models.CharField(max_length=80)),
                ('vectors', models.BinaryField()),
                ('made_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [models.Index(fields=['made_at'], name='library_vectors_by_age')],
                'constraints': [models.UniqueConstraint(fields=('digest', 'embedder'), name='library_vectors_are_unique')],
            },
        ),
    ]
