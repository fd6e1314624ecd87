"""The passages an answer cites: where their numbers lead, and the view of one beside the chat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models.functions import Substr
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.answer_links import Citation
from chat.models import Run
from chat.queries import citations_of, run_of
from chat.sources import section_below
from chat.views.frame import person_of
from chat.views.passage_text import Block, Range, blocks_of
from chat.views.places import Place, Places, places_of
from klerai.accounts.models import Person
from retrieval.knowledge import documents_of

AROUND = 700
STAGES = {"keyword": "Keyword", "vector": "Vector", "fused": "Fused", "reranked": "Reranked"}


@dataclass(frozen=True, slots=True)
class Stage:
    """How one stage of the search saw the passage."""

    name: str
    words: str


def cited_in(run: Run, citations: Iterable[Place], places: Places) -> tuple[Citation, ...]:
    """What the answer of a run cites, with addresses."""
    return tuple(_citation(run, cited, places) for cited in citations)


@never_cache
@login_required
@require_safe
def passage(request: HttpRequest, run_id: UUID, n: int) -> HttpResponse:
    """A cited passage with the words around it: what the page shows beside the chat."""
    person = person_of(request)
    run = run_of(person, run_id)
    cited = next((one for one in citations_of(run) if one["n"] == n), None) if run else None
    if run is None or cited is None:
        raise Http404
    document_id, place = cited["document_id"], Range(cited["start"], cited["end"])
    around = _around(person, document_id, place) if document_id else None
    trail, _, heading = section_below(cited["title"], cited["section"]).rpartition(" › ")
    context = {
        "citation": cited,
        "heading": heading or cited["title"],
        "trail": trail,
        "is_gone": document_id is not None and around is None,
        "blocks": around,
        "found": _stages(cited),
        "href": places_of(person, [cited]).address(cited),
    }
    return render(request, "chat/passage.html", context)


def _around(person: Person, document_id: str, place: Range) -> list[Block] | None:
    """The passage with what stands around it; the rest of a long document stays in the database."""
    before = min(place.start, AROUND)
    row = (
        documents_of(person)
        .filter(pk=document_id)
        .values_list(
            Substr("text", place.start - before + 1, before),
            Substr("text", place.start + 1, place.end - place.start),
            Substr("text", place.end + 1, AROUND),
            "media_type",
        )
        .first()
    )
    if row is None:
        return None
    earlier, passage, later = _from_paragraph(row[0]), row[1], _to_paragraph(row[2])
    return blocks_of(earlier + passage + later, offset=place.start - len(earlier), media_type=row[3], marked=place)


def _citation(run: Run, cited: Place, places: Places) -> Citation:
    panel = reverse("cited-passage", args=[run.run_id, cited["n"]])
    href = places.address(cited) or panel
    section = section_below(cited["title"], cited["section"])
    return Citation(cited["n"], cited["title"], section, cited["quote"], href, panel, cited["origin"])


def _stages(cited: Place) -> Sequence[Stage]:
    ranks, scores = cited.get("ranks") or {}, cited.get("scores") or {}
    return [
        Stage(name, f"rank {ranks[key]} · {scores[key]:.3f}")
        for key, name in STAGES.items()
        if ranks.get(key) is not None and scores.get(key) is not None
    ]


def _from_paragraph(text: str) -> str:
    """What stands before, from the beginning of a paragraph on."""
    return text if len(text) < AROUND else text.partition("\n\n")[2]


def _to_paragraph(text: str) -> str:
    return text if len(text) < AROUND else text.rpartition("\n\n")[0]


urlpatterns = [path("chat/runs/<uuid:run_id>/sources/<int:n>/", passage, name="cited-passage")]
