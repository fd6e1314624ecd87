"""The passages an answer cites: where their numbers lead, and the view of one beside the chat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
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
from chat.views.frame import person_of
from chat.views.passage_text import Block, Range, blocks_of
from klerai.accounts.models import Person
from retrieval.knowledge import documents_of

AROUND = 700
STAGES = {"keyword": "Keyword", "vector": "Vector", "fused": "Fused", "reranked": "Reranked"}


@dataclass(frozen=True, slots=True)
class Stage:
    """How one stage of the search saw the passage."""

    name: str
    words: str


def cited_in(runs: Iterable[Run]) -> dict[UUID, tuple[Citation, ...]]:
    """The citations of each run with their addresses; a document that is gone, or is not the person's, has none."""
    found = {run.pk: (run, citations_of(run)) for run in runs}
    wanted = {citation["document_id"] for _, cited in found.values() for citation in cited if citation["document_id"]}
    slugs = _slugs(next(iter(found.values()))[0].person, wanted) if wanted else {}
    return {key: tuple(_citation(run, one, slugs) for one in cited) for key, (run, cited) in found.items()}


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
    slugs = _slugs(person, {document_id}) if around else {}
    trail, _, heading = (cited["section"] or "").rpartition(" › ")
    context = {
        "citation": cited,
        "heading": heading or cited["title"],
        "trail": trail,
        "is_gone": document_id is not None and around is None,
        "blocks": around,
        "found": _stages(cited),
        "href": cited["url"] or (_reader(slugs[document_id], cited) if document_id in slugs else ""),
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


def _slugs(person: Person, document_ids: set[str]) -> dict[str, str]:
    rows = documents_of(person).filter(pk__in=document_ids).values_list("pk", "knowledge_base__slug")
    return {str(key): slug for key, slug in rows}


def _citation(run: Run, cited: Mapping[str, Any], slugs: Mapping[str, str]) -> Citation:
    panel = reverse("cited-passage", args=[run.run_id, cited["n"]])
    slug = slugs.get(cited["document_id"] or "")
    href = cited["url"] or (_reader(slug, cited) if slug else panel)
    return Citation(cited["n"], cited["title"], cited["section"] or "", cited["quote"], href, panel)


def _reader(slug: str, cited: Mapping[str, Any]) -> str:
    page = reverse("knowledge-document", args=[slug, cited["document_id"]])
    return f"{page}?start={cited['start']}&end={cited['end']}#passage"


def _stages(cited: Mapping[str, Any]) -> Sequence[Stage]:
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
