"""The memory of a conversation, as a page and over REST."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.answer_links import item_links
from chat.errors import TemporaryGone
from chat.memory.inspection import Asked, Inspection, Pair, inspect, item_json, memory_json
from chat.queries import conversation_of, is_gone
from chat.views.frame import framed, gone_page, person_of
from chat.views.operation_schema import refused
from chat.views.runs import as_api_error
from chat.views.sidebar import title_of
from klerai.accounts.authentication import requester
from klerai.accounts.models import Person
from klerai.api import ApiError
from klerai.json_schema import named

TRACKS = ("full", "summarised")
CLAMPED_FROM = 320
SHOWN_CHARACTERS = 2_000


class Memory(APIView):
    """Every item of the branch shown, whole or as it is sent, and what that saved."""

    @extend_schema(
        parameters=[OpenApiParameter("track", str, enum=TRACKS, description="`full` unless said otherwise.")],
        operation_id="memory",
        responses={200: named("Memory"), **refused(410)},
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        track = request.query_params.get("track", "full")
        if track not in TRACKS:
            problem = "Choose full or summarised."
            raise ApiError("invalid", f"track: {problem}", status=400, fields={"track": [problem]})
        return Response(memory_json(_inspected(requester(request), conversation_id), track=track))


class MemoryItem(APIView):
    """One item by its ID; the ID of a summary gives the summary."""

    @extend_schema(operation_id="memory_item", responses={200: named("MemoryItem"), **refused(410)})
    def get(self, request: Request, conversation_id: UUID, ref: str) -> Response:
        found = _inspected(requester(request), conversation_id).find(ref)
        if found is None:
            raise Http404
        is_summary = ref == found.sent_id and not found.is_same
        return Response(item_json(found, track="summarised" if is_summary else "full"))


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item in words: what stands in its header and how much of it is shown at once."""

    pair: Pair
    heading: str
    text: str
    is_long: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A question in the chart: widths in per cent of the widest."""

    asked: Asked
    y: int
    full: str
    sent: str
    opened: str
    opened_at: str
    words_at: str


@never_cache
@login_required
@require_safe
def memory(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    person = person_of(request)
    conversation = conversation_of(person, conversation_id)
    if conversation is None:
        raise Http404
    if is_gone(conversation):
        return gone_page(request)
    found = inspect(conversation)
    whole = request.GET.get("whole", "")
    full_sent = sum(asked.full for asked in found.asked)
    bars = _bars(found)
    lines = found.fold.lines if found.fold else ()
    links = item_links(conversation, lines)
    context = {
        "title": title_of(conversation),
        "conversation_id": conversation.pk,
        "found": found,
        "items": [_view(pair, is_whole=pair.ref == whole) for pair in found.pairs],
        "fold_lines": [mark_safe(links.in_text(line)) for line in lines],
        "bars": bars,
        "chart_height": 30 * len(bars),
        "share": round(100 * found.saved / full_sent) if full_sent else 0,
        "summarised": sum(not pair.is_same for pair in found.pairs),
        "opened": sum(bool(pair.opened_in) for pair in found.pairs),
    }
    return framed(request, "chat/memory.html", context, current=conversation.pk)


def _inspected(person: Person, conversation_id: UUID) -> Inspection:
    conversation = conversation_of(person, conversation_id)
    if conversation is None:
        raise Http404
    try:
        return inspect(conversation)
    except TemporaryGone as gone:
        raise as_api_error(gone) from gone


def _view(pair: Pair, *, is_whole: bool) -> ItemView:
    text = pair.text if is_whole else pair.text[:SHOWN_CHARACTERS]
    return ItemView(pair, _heading(pair), text, not is_whole and len(pair.text) > CLAMPED_FROM)


def _heading(pair: Pair) -> str:
    match pair.item.kind:
        case "query":
            return "question"
        case "response":
            return "answer"
        case _:
            return pair.item.tool if pair.item.is_ok else f"{pair.item.tool}, failed"


def _bars(found: Inspection) -> list[Bar]:
    asked = [each for each in found.asked if each.full]
    widest = max((max(each.full, each.sent + each.opened) for each in asked), default=1) / 60
    return [_bar(each, 30 * place, widest) for place, each in enumerate(asked)]


def _bar(asked: Asked, y: int, unit: float) -> Bar:
    longest = max(asked.full, asked.sent + asked.opened) / unit
    return Bar(
        asked,
        y,
        full=f"{asked.full / unit:.2f}%",
        sent=f"{asked.sent / unit:.2f}%",
        opened=f"{asked.opened / unit:.2f}%",
        opened_at=f"{asked.sent / unit:.2f}%",
        words_at=f"{longest + 1.5:.2f}%",
    )


urlpatterns = [
    path("chat/<uuid:conversation_id>/memory/", memory, name="memory"),
    path("api/conversations/<uuid:conversation_id>/memory", Memory.as_view(), name="api_memory"),
    path("api/conversations/<uuid:conversation_id>/memory/<str:ref>", MemoryItem.as_view(), name="api_memory_item"),
]
