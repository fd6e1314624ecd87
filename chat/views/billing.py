"""What is left and where it went, over REST."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.credits import LedgerRow, Limit, balance_of, entries_of, limits_of
from billing.plans import plan_of
from chat.queries import runs_of
from klerai.accounts.authentication import requester
from klerai.accounts.models import Person
from klerai.api import invalid

MOST_ROWS = 100


class Billing(APIView):
    """Plan, balance, and every limit by its name."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        person = requester(request)
        balance = balance_of(person)
        return Response(
            {
                "plan": plan_of(person).name,
                "status": "active",
                "balance": {"daily": balance.daily, "pack": balance.pack, "held": balance.held},
                "limits": [limit_json(limit) for limit in limits_of(person)],
                "ceiling": person.ceiling_credits,
                "time_zone": person.time_zone,
            }
        )


class Ledger(APIView):
    """Every movement of the person's credits, newest first."""

    @extend_schema(
        parameters=[OpenApiParameter("limit", int), OpenApiParameter("cursor", int)], responses=OpenApiTypes.OBJECT
    )
    def get(self, request: Request) -> Response:
        person = requester(request)
        limit = _number(request, "limit", 20, at_most=MOST_ROWS)
        before = _number(request, "cursor", None, at_most=2**62)
        rows = entries_of(person, before=before, limit=(limit or 20) + 1)
        shown = rows[:limit]
        runs = _public_ids(person, [row.run_id for row in shown if row.run_id])
        more = len(rows) > len(shown)
        following = f"{request.build_absolute_uri(request.path)}?limit={limit}&cursor={shown[-1].number}"
        return Response({"results": [row_json(row, runs) for row in shown], "next": following if more else None})


def limit_json(limit: Limit) -> dict[str, Any]:
    return {"name": limit.name, "used": limit.used, "max": limit.max, "resets_at": limit.resets_at.isoformat()}


def row_json(row: LedgerRow, runs: dict[UUID, UUID]) -> dict[str, Any]:
    run_id = runs.get(row.run_id) if row.run_id else None
    return {
        "id": str(row.id),
        "created_at": row.created_at.isoformat(),
        "kind": row.kind,
        "run_id": str(run_id) if run_id else None,
        "reason": row.reason,
        "daily": row.daily,
        "pack": row.pack,
        "held": row.held,
        "spent": row.spent,
        "expired": row.expired,
        "balance_after": {"daily": row.daily_after, "pack": row.pack_after},
    }


def _public_ids(person: Person, keys: list[UUID]) -> dict[UUID, UUID]:
    return dict(runs_of(person).filter(pk__in=keys).values_list("pk", "run_id"))


def _number(request: Request, name: str, default: int | None, *, at_most: int) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:20]) <= at_most):
        raise invalid({name: [f"Send a whole number from 1 to {at_most:,}."]})
    return int(text)


urlpatterns = [
    path("api/billing", Billing.as_view(), name="api_billing"),
    path("api/billing/ledger", Ledger.as_view(), name="api_ledger"),
]
