"""Lists of the API: newest first, a page at a time, with a cursor that new rows do not move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from klerai.api import invalid

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class NewestFirst(CursorPagination):
    """`?limit=` 1 to 100 (20), `?cursor=` from `next`; nonsense in either is `invalid`, never guessed at."""

    page_size = DEFAULT_LIMIT
    max_page_size = MAX_LIMIT
    page_size_query_param = "limit"
    ordering = ("-created_at", "-id")

    def get_page_size(self, request: Request) -> int:
        text = request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_LIMIT):
            raise invalid({"limit": [f"Must be a whole number from 1 to {MAX_LIMIT}."]})
        return int(text)

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except NotFound as error:
            raise invalid({"cursor": ["Must be the cursor of a `next` address."]}) from error

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.get_next_link()})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return _page_schema(schema)


PAGE = [
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        description="A page.",
    ),
    OpenApiParameter("cursor", str, description="From `next`."),
]


def page_of(shape: dict[str, Any]) -> dict[str, Any]:
    """The schema of a page of a list whose entries have this shape."""
    return _page_schema({"type": "array", "items": shape})


def _page_schema(entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["results", "next"],
        "properties": {
            "results": entries,
            "next": {"type": ["string", "null"], "format": "uri"},
        },
    }
