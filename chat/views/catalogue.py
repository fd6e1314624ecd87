"""What there is to use: tools and modes."""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.pricing import price_of
from chat.mcp.servers import tools_with
from chat.profiles import PROFILES, Profile, missing_tools
from chat.tools.base import Tool
from chat.tools.registry import discover
from chat.views.servers import server_tools
from klerai.accounts.access import Access
from klerai.json_schema import ANYTHING, FLAG, NUMBER, TEXT, WHOLE, listed, maybe, record, said
from klerai.pagination import page_of

TOOL = record(
    name=TEXT, description=TEXT, schema=ANYTHING, category=TEXT, price=said(WHOLE, "Credits."), contexts=listed(TEXT)
)
MODE = record(
    name=TEXT,
    title=TEXT,
    description=TEXT,
    available=FLAG,
    missing=said(listed(TEXT), "Tools that it needs and that are not here."),
    limits=record(turns=WHOLE, tool_calls=maybe(WHOLE), seconds=NUMBER),
)


class Tools(APIView):
    """Every tool this person's questions may use, with what a successful call costs."""

    opens_to = (Access.READ, Access.CHAT)

    @extend_schema(operation_id="tools", responses={200: page_of(TOOL)})
    def get(self, request: Request) -> Response:
        tools = tools_with(discover(), server_tools(request._request))
        return Response({"results": [tool_json(tool) for tool in tools.values()], "next": None})


class Modes(APIView):
    """What each mode is, whether it can be used here, and its limits."""

    opens_to = (Access.READ, Access.CHAT)

    @extend_schema(operation_id="modes", responses={200: page_of(MODE)})
    def get(self, request: Request) -> Response:
        registered = frozenset(discover())
        return Response({"results": [mode_json(mode, registered) for mode in PROFILES.values()], "next": None})


def tool_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.parameters,
        "category": tool.category,
        "price": price_of(tool.category, tool=tool.name).credits,
        "contexts": list(tool.contexts),
    }


def mode_json(profile: Profile, registered: frozenset[str]) -> dict[str, Any]:
    missing = missing_tools(profile, registered)
    return {
        "name": profile.name,
        "title": profile.title,
        "description": profile.description,
        "available": not missing,
        "missing": list(missing),
        "limits": {
            "turns": profile.max_turns,
            "tool_calls": profile.max_tool_calls,
            "seconds": profile.deadline_seconds,
        },
    }


urlpatterns = [
    path("api/tools", Tools.as_view(), name="api_tools"),
    path("api/modes", Modes.as_view(), name="api_modes"),
]
