"""Searching over REST: what a conversation would find, with every stage's ranks and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from chat.views.knowledge import KnowledgeView
from klerai.accounts.authentication import requester
from klerai.api import invalid
from klerai.pagination import MAX_LIMIT
from retrieval.embedders.choosing import reranker_by_settings
from retrieval.passages import found_json
from retrieval.search import search

DEFAULT_LIMIT = 5
QUERY_CHARACTERS = 2_000

_STAGES = ("keyword", "vector", "fused", "reranked")
_RESULT = {
    "type": "object",
    "required": ["document", "text", "section", "start", "end", "ranks", "scores"],
    "properties": {
        "document": {
            "type": "object",
            "required": ["id", "external_id", "title"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "external_id": {"type": "string"},
                "title": {"type": "string"},
            },
        },
        "knowledge_base": {"type": "string", "description": "Its slug."},
        "text": {"type": "string"},
        "section": {"type": "string"},
        "start": {"type": "integer", "description": "Its first character in the document's text."},
        "end": {"type": "integer"},
        "page": {"type": ["integer", "null"]},
        "ranks": {"type": "object", "properties": {name: {"type": ["integer", "null"]} for name in _STAGES}},
        "scores": {"type": "object", "properties": {name: {"type": ["number", "null"]} for name in _STAGES}},
    },
}
SHAPE = {
    "type": "object",
    "required": ["results", "degraded"],
    "properties": {
        "results": {"type": "array", "items": _RESULT},
        "degraded": {"type": "array", "items": {"type": "string"}, "description": "What was missing, in sentences."},
    },
}


class KnowledgeSearch(KnowledgeView):
    """The passages that answer best, best first; `default_kb` searches all that the person may read."""

    pagination_class = None

    @extend_schema(
        parameters=[
            OpenApiParameter("q", {"type": "string", "minLength": 1, "maxLength": QUERY_CHARACTERS}, required=True),
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
            ),
        ],
        responses={200: SHAPE},
    )
    def get(self, request: Request, slug: str) -> Response:
        query, limit = asked_for(request.query_params)
        rerank = reranker_by_settings()
        found = async_to_sync(search)(requester(request), query, knowledge_base=slug, limit=limit, rerank=rerank)
        return Response(found_json(found))


def asked_for(address: Mapping[str, Any], *, limit: int = DEFAULT_LIMIT) -> tuple[str, int]:
    """The query and the limit of an address. Raises ApiError that names what is wrong with them."""
    query, text = address.get("q", "").strip(), address.get("limit", str(limit))
    wrong = {}
    if problem := problem_of(query):
        wrong["q"] = [problem]
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_LIMIT):
        wrong["limit"] = [f"Must be a whole number from 1 to {MAX_LIMIT}."]
    if wrong:
        raise invalid(wrong)
    return query, int(text)


def problem_of(query: str) -> str:
    """Why this cannot be looked for, in a sentence; empty when it can."""
    if not query:
        return "Say what to look for."
    if len(query) > QUERY_CHARACTERS:
        return f"A query has at most {QUERY_CHARACTERS:,} characters; this one has {len(query):,}."
    return "A query cannot contain the character NUL." if "\x00" in query else ""


urlpatterns = [
    path("api/knowledge-bases/<slug:slug>/search", KnowledgeSearch.as_view(), name="api_knowledge_search"),
]
