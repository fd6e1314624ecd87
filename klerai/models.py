"""Rows that belong to the product as a whole."""

from __future__ import annotations

import uuid

from django.db import models


class OutgoingMail(models.Model):
    """A message not delivered yet. It goes with its delivery, so that no link in it outlives its use here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    message = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"mail {self.id}"


class LegalPage(models.Model):
    """A page in the operator's own words, as Markdown. Without a text the draft that comes with the product shows."""

    class Slug(models.TextChoices):
        TERMS = "terms", "Terms"
        PRIVACY = "privacy", "Privacy"
        REFUNDS = "refunds", "Refunds"
        CONTACT = "contact", "Contact"

    slug = models.CharField(primary_key=True, max_length=7, choices=Slug.choices)
    text = models.TextField(
        blank=True,
        max_length=100_000,
        help_text="Markdown. {vendors} becomes the list of who is sent what, {contact} the address mail comes from, "
        "{site} the name of this server, {terms_page} and so on the addresses of the pages. "
        "Leave it empty to show the draft.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.get_slug_display()
