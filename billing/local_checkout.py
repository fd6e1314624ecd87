"""What can happen in the test checkout and its portal, each announced as Stripe would announce it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from billing import inbox, signature
from billing.local_rows import LocalObject
from billing.local_stripe import change, keep


@transaction.atomic
def pay(session_id: str) -> None:
    """The card is good: a pack is paid for, or a subscription begins."""
    row = LocalObject.objects.select_for_update().get(kind="session", pk=session_id)
    session = row.content
    if session["status"] != "open":
        return
    now = _now()
    paid: dict[str, Any] = {"status": "complete", "payment_status": "paid"}
    if session["mode"] == "payment":
        intent = _payment(session, now)
        change(session_id, **paid, payment_intent=intent["id"])
    else:
        subscription = _subscription(session, now)
        change(session_id, **paid, subscription=subscription["id"])
        announce("customer.subscription.created", subscription)
    announce("checkout.session.completed", LocalObject.objects.get(pk=session_id).content)


@transaction.atomic
def leave(session_id: str) -> None:
    """Nothing was bought, and this checkout is over."""
    row = LocalObject.objects.select_for_update().get(kind="session", pk=session_id)
    if row.content["status"] == "open":
        announce("checkout.session.expired", change(session_id, status="expired"))


@transaction.atomic
def cancel(subscription_id: str, *, wanted: bool) -> None:
    """Let it end with its period, or go on after all."""
    announce("customer.subscription.updated", change(subscription_id, cancel_at_period_end=wanted))


@transaction.atomic
def end_period(subscription_id: str, *, is_paid: bool) -> None:
    """Let the period be over now: the subscription ends if it was cancelled, else the next one is paid for or not."""
    subscription = LocalObject.objects.select_for_update().get(pk=subscription_id).content
    now = _now()
    if subscription["cancel_at_period_end"]:
        announce("customer.subscription.deleted", change(subscription_id, status="canceled", ended_at=now))
        return
    items = [{**one, **_period(now)} for one in subscription["items"]["data"]]
    invoice = _invoice(now, is_paid=is_paid, reason="subscription_cycle")
    status = "active" if is_paid else "past_due"
    renewed = change(subscription_id, status=status, items={"data": items}, latest_invoice=invoice)
    announce("customer.subscription.updated", renewed)


@transaction.atomic
def settle_invoice(subscription_id: str, *, is_paid: bool) -> None:
    """The open payment arrives after all, or never does and the subscription ends."""
    subscription = LocalObject.objects.select_for_update().get(pk=subscription_id).content
    if subscription["status"] != "past_due":
        return
    if not is_paid:
        announce("customer.subscription.deleted", change(subscription_id, status="canceled", ended_at=_now()))
        return
    invoice = {**subscription["latest_invoice"], "status": "paid"}
    announce("customer.subscription.updated", change(subscription_id, status="active", latest_invoice=invoice))


def announce(kind: str, thing: dict[str, Any]) -> None:
    """Sign an announcement and hand it to what takes Stripe's in."""
    event = {
        "id": f"evt_local_{uuid.uuid4().hex}",
        "object": "event",
        "api_version": "local",
        "created": _now(),
        "livemode": False,
        "type": kind,
        "data": {"object": thing},
    }
    raw, now = json.dumps(event).encode(), timezone.now()
    header = signature.signed(raw, secret=settings.STRIPE.webhook_secret, now=now)
    inbox.take_in(inbox.read(raw, header, now=now))


def _payment(session: dict[str, Any], now: int) -> dict[str, Any]:
    intent = {
        "id": f"pi_local_{uuid.uuid4().hex}",
        "object": "payment_intent",
        "status": "succeeded",
        "customer": session["customer"],
        "amount_received": session["amount_subtotal"],
        "currency": session["currency"],
        "created": now,
        "livemode": False,
    }
    return keep("payment_intent", session["customer"], intent)


def _subscription(session: dict[str, Any], now: int) -> dict[str, Any]:
    (line,) = session["line_items"]["data"]
    item = {"id": f"si_local_{uuid.uuid4().hex}", "price": line["price"], "quantity": 1, **_period(now)}
    subscription = {
        "id": f"sub_local_{uuid.uuid4().hex}",
        "object": "subscription",
        "status": "active",
        "customer": session["customer"],
        "metadata": {"order": session["client_reference_id"]},
        "items": {"data": [item]},
        "created": now,
        "cancel_at_period_end": False,
        "cancel_at": None,
        "ended_at": None,
        "latest_invoice": _invoice(now, is_paid=True, reason="subscription_create"),
        "livemode": False,
    }
    return keep("subscription", session["customer"], subscription)


def _invoice(now: int, *, is_paid: bool, reason: str) -> dict[str, Any]:
    status = "paid" if is_paid else "open"
    return {"id": f"in_local_{uuid.uuid4().hex}", "status": status, "billing_reason": reason, "created": now}


def _period(now: int) -> dict[str, int]:
    return {"current_period_start": now, "current_period_end": int(_month_after(now).timestamp())}


def _month_after(seconds: int) -> datetime:
    """The same day of the next month, or its last."""
    start = datetime.fromtimestamp(seconds, UTC)
    year, month = (start.year + 1, 1) if start.month == 12 else (start.year, start.month + 1)
    for day in range(start.day, 0, -1):
        try:
            return start.replace(year=year, month=month, day=day)
        except ValueError:
            continue
    raise AssertionError("every month has a first day")


def _now() -> int:
    return int(timezone.now().timestamp())
