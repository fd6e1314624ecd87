"""Where a person reads the passages that searches found: a page of the document, or the address outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from klerai.accounts.models import Person
from retrieval.knowledge import documents_of

Place = Mapping[str, Any]  # a citation, or what a card keeps of a passage


@dataclass(frozen=True, slots=True)
class Places:
    """The knowledge base of each document the person may still read."""

    slugs: Mapping[str, str]

    def address(self, place: Place) -> str:
        """Where the passage opens, marked; empty when its document is gone or not the person's."""
        if place.get("url"):
            return str(place["url"])
        slug = self.slugs.get(place.get("document_id") or "")
        if slug is None:
            return ""
        page = reverse("knowledge-document", args=[slug, place["document_id"]])
        return f"{page}?start={place['start']}&end={place['end']}#passage"


def places_of(person: Person, places: Iterable[Place]) -> Places:
    """One query for everything a page names, and none when it names nothing."""
    wanted = {place["document_id"] for place in places if place.get("document_id")}
    if not wanted:
        return Places({})
    rows = documents_of(person).filter(pk__in=wanted).values_list("pk", "knowledge_base__slug")
    return Places({str(key): slug for key, slug in rows})
