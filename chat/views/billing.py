"""What is left and where it went, over REST."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin
from uuid import UUID

from django.conf import settings
from django.urls import path, reverse
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing import shop
from billing.credits import LedgerRow, Limit, balance_of, entries_of, limits_of
from billing.errors import AlreadySubscribed, NothingSold, NotOffered, NotSubscribed, SaleError
from billing.plans import plan_of
from chat.queries import runs_of
from chat.views.billing_schema import BILLING, ENTRY
from chat.views.knowledge import quota_of
from chat.views.operation_schema import refused
from klerai.accounts.access import Access
from klerai.accounts.authentication import requester
from klerai.accounts.models import Person
from klerai.api import ApiError, invalid
from klerai.pagination import PAGE, page_of
from retrieval.quotas import kept_by

MOST_ROWS = 100
WANTED = inline_serializer(
    "Wanted", {"pack": serializers.CharField(required=False), "plan": serializers.CharField(required=False)}
)
ADDRESS = inline_serializer("Address", {"url": serializers.URLField()})


class Billing(APIView):
    """Plan, balance, and every limit by its name."""

    opens_to = (Access.BILLING,)

    @extend_schema(operation_id="billing", responses={200: BILLING})
    def get(self, request: Request) -> Response:
        person = requester(request)
        balance = balance_of(person)
        return Response(
            {
                "plan": plan_of(person).name,
                "status": shop.status_of(person),
                "balance": {"daily": balance.daily, "pack": balance.pack, "held": balance.held},
                "limits": [limit_json(limit) for limit in limits_of(person)],
                "storage": storage_json(person),
                "ceiling": person.ceiling_credits,
                "time_zone": person.time_zone,
            }
        )


class Ledger(APIView):
    """Every movement of the person's credits, newest first."""

    opens_to = (Access.BILLING,)

    @extend_schema(operation_id="ledger", parameters=PAGE, responses={200: page_of(ENTRY)})
    def get(self, request: Request) -> Response:
        person = requester(request)
        limit = _number(request, "limit", 20, at_most=MOST_ROWS)
        before = _number(request, "cursor", None, at_most=2**62)
        rows = entries_of(person, before=before, limit=(limit or 20) + 1)
        shown = rows[:limit]
        runs = _public_ids(person, [row.run_id for row in shown if row.run_id])
        following = None
        if len(rows) > len(shown):
            following = f"{request.build_absolute_uri(request.path)}?limit={limit}&cursor={shown[-1].number}"
        return Response({"results": [row_json(row, runs) for row in shown], "next": following})


class Checkout(APIView):
    """Where to pay for a pack or a plan. What was paid for arrives when Stripe has said so."""

    opens_to = (Access.BILLING,)

    @extend_schema(request=WANTED, responses={200: ADDRESS, **refused(409, 503)})
    def post(self, request: Request) -> Response:
        person = requester(request)
        wanted = {name: request.data.get(name) for name in ("plan", "pack") if isinstance(request.data, dict)}
        named = {name: str(value) for name, value in wanted.items() if isinstance(value, str | int)}
        if len(named) != 1:
            raise invalid({"pack": [f"Send either a pack, {_packs()}, or a plan, {_plans()}."]})
        try:
            return Response({"url": shop.start_checkout(person, **named, return_url=return_url())})
        except SaleError as error:
            raise sale_refused(error) from error


class Portal(APIView):
    """Where invoices are, the card is changed and the plan is cancelled."""

    opens_to = (Access.BILLING,)

    @extend_schema(request=None, responses={200: ADDRESS, **refused(400, 404, 503)})
    def post(self, request: Request) -> Response:
        try:
            return Response({"url": shop.open_portal(requester(request), return_url=return_url())})
        except SaleError as error:
            raise sale_refused(error) from error


def return_url() -> str:
    return urljoin(settings.BASE_URL, reverse("billing"))


def sale_refused(error: SaleError) -> ApiError:
    """Why nothing was bought, in words."""
    match error:
        case NotOffered():
            return invalid({"pack": [f"That is not for sale. Packs: {_packs()}. Plans: {_plans()}."]})
        case AlreadySubscribed():
            message = "You have a subscription already. Change it in the portal. Nothing was charged."
            return ApiError("invalid", message, status=409, fields={"plan": [message]})
        case NotSubscribed():
            return ApiError("not_found", "You have not bought anything yet, so there is nothing to manage.", status=404)
        case NothingSold():
            return ApiError("unsupported", "Nothing is for sale on this server. Nothing was charged.", status=400)
        case _:
            message = "The payment service did not answer as it should. Nothing was charged. Try again in a minute."
            return ApiError("capacity", message, status=503, headers={"Retry-After": "60"})


def _packs() -> str:
    return " or ".join(offer.slug for offer in shop.packs_offered())


def _plans() -> str:
    return " or ".join(offer.name for offer in shop.plans_offered() if offer.cents)


def storage_json(person: Person) -> dict[str, Any]:
    """What is kept in knowledge bases, and how much the plan has room for; null is no limit."""
    quota, kept = quota_of(person), kept_by(person)
    return {
        "documents": {"used": kept.documents, "max": quota.documents},
        "bytes": {"used": kept.bytes, "max": quota.bytes},
    }


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
    path("api/billing/checkout", Checkout.as_view(), name="api_checkout"),
    path("api/billing/portal", Portal.as_view(), name="api_portal"),
]
