"""Four pages in the operator's own words, empty at first: the drafts show."""

from django.db import migrations, models

SLUGS = [("terms", "Terms"), ("privacy", "Privacy"), ("refunds", "Refunds"), ("contact", "Contact")]


def add_pages(apps, schema_editor):
    pages = apps.get_model("klerai", "LegalPage")
    for slug, _ in SLUGS:
        pages.objects.get_or_create(slug=slug)


class Migration(migrations.Migration):
    dependencies = [("klerai", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="LegalPage",
            fields=[
                ("slug", models.CharField(choices=SLUGS, max_length=7, primary_key=True, serialize=False)),
                (
                    "text",
                    models.TextField(
                        blank=True,
                        help_text="Markdown. {vendors} becomes the list of who is sent what, {contact} the address "
                        "mail comes from, {site} the name of this server, {terms_page} and so on the addresses of "
                        "the pages. Leave it empty to show the draft.",
                        max_length=100000,
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RunPython(add_pages, migrations.RunPython.noop),
    ]
