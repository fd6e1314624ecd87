"""How Stripe's objects look: as they do today, and as an endpoint from before 2025-03-31 is still sent them."""

from __future__ import annotations

import copy
from typing import Any

API_VERSION, OLDER_VERSION = "2026-10-28.endive", "2024-06-20"
BASIL = "2025-03-31"
Thing = dict[str, Any]


def listed(things: list[Thing], url: str, *, has_more: bool = False) -> Thing:
    return {"object": "list", "data": things, "has_more": has_more, "url": url}


def session(id: str, now: int, params: Thing, *, price: Thing, url: str) -> Thing:
    quantity = int(params["line_items"][0].get("quantity", 1))
    line = {"id": f"li_{id}", "object": "item", "price": price, "quantity": quantity, "currency": price["currency"]}
    return {
        "id": id,
        "object": "checkout.session",
        "mode": params["mode"],
        "status": "open",
        "payment_status": "unpaid",
        "url": url,
        "ui_mode": "hosted_page",
        "customer": params["customer"],
        "client_reference_id": params.get("client_reference_id"),
        "amount_subtotal": price["unit_amount"] * quantity,
        "amount_total": price["unit_amount"] * quantity,
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "automatic_tax": params.get("automatic_tax", {"enabled": False}),
        "currency": price["currency"],
        "payment_intent": None,
        "subscription": None,
        "invoice": None,
        "metadata": params.get("metadata", {}),
        "success_url": params["success_url"],
        "cancel_url": params.get("cancel_url"),
        "line_items": listed([line], f"/v1/checkout/sessions/{id}/line_items"),
        "created": now,
        "expires_at": now + 86_400,
        "livemode": False,
    }


def subscription(id: str, now: int, *, customer: str, price: Thing, metadata: Thing, period_end: int) -> Thing:
    item = {
        "id": f"si_{id}",
        "object": "subscription_item",
        "price": price,
        "quantity": 1,
        "subscription": id,
        "current_period_start": now,
        "current_period_end": period_end,
    }
    return {
        "id": id,
        "object": "subscription",
        "status": "active",
        "customer": customer,
        "currency": price["currency"],
        "items": listed([item], f"/v1/subscription_items?subscription={id}"),
        "metadata": metadata,
        "cancel_at": None,
        "cancel_at_period_end": False,
        "canceled_at": None,
        "ended_at": None,
        "latest_invoice": None,
        "start_date": now,
        "created": now,
        "livemode": False,
    }


def invoice(id: str, now: int, *, customer: str, cents: int, reason: str, subscription: str | None) -> Thing:
    parent = None
    if subscription:
        parent = {"type": "subscription_details", "subscription_details": {"subscription": subscription}}
    return {
        "id": id,
        "object": "invoice",
        "status": "open",
        "customer": customer,
        "amount_due": cents,
        "amount_paid": 0,
        "attempt_count": 0,
        "billing_reason": reason,
        "currency": "usd",
        "parent": parent,
        "created": now,
        "livemode": False,
    }


def payment_intent(id: str, now: int, *, customer: str, cents: int, currency: str, metadata: Thing) -> Thing:
    return {
        "id": id,
        "object": "payment_intent",
        "status": "requires_payment_method",
        "customer": customer,
        "amount": cents,
        "amount_received": 0,
        "currency": currency,
        "latest_charge": None,
        "metadata": metadata,
        "created": now,
        "livemode": False,
    }


def charge(id: str, now: int, intent: Thing) -> Thing:
    return {
        "id": id,
        "object": "charge",
        "status": "succeeded",
        "paid": True,
        "customer": intent["customer"],
        "payment_intent": intent["id"],
        "amount": intent["amount"],
        "amount_refunded": 0,
        "refunded": False,
        "disputed": False,
        "currency": intent["currency"],
        "created": now,
        "livemode": False,
    }


def refund(id: str, now: int, charge: Thing, *, cents: int, status: str) -> Thing:
    return {
        "id": id,
        "object": "refund",
        "status": status,
        "amount": cents,
        "currency": charge["currency"],
        "charge": charge["id"],
        "payment_intent": charge["payment_intent"],
        "created": now,
    }


def dispute(id: str, now: int, charge: Thing, *, cents: int, status: str) -> Thing:
    return {
        "id": id,
        "object": "dispute",
        "status": status,
        "amount": cents,
        "currency": charge["currency"],
        "charge": charge["id"],
        "payment_intent": charge["payment_intent"],
        "reason": "fraudulent",
        "created": now,
        "livemode": False,
    }


def in_version(thing: Thing, version: str) -> Thing:
    """A copy of the form that a version of the API has."""
    shown = copy.deepcopy(thing)
    if version < BASIL:
        _older(shown)
    return shown


def _older(thing: Any) -> None:
    if isinstance(thing, list):
        for one in thing:
            _older(one)
    if not isinstance(thing, dict):
        return
    for one in thing.values():
        _older(one)
    match thing.get("object"):
        case "subscription":
            for name in ("current_period_start", "current_period_end"):
                thing[name] = max(item.pop(name) for item in thing["items"]["data"])
        case "invoice":
            parent = thing.pop("parent", None) or {}
            thing["subscription"] = parent.get("subscription_details", {}).get("subscription")
            thing["paid"] = thing["status"] == "paid"
