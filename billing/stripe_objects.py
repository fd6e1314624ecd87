"""What is read out of Stripe's objects, in the form they have today and in the one before 2025-03-31."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A checkout. `subtotal` is before taxes and after discounts; `price_ids` are those of its lines."""

    id: str
    url: str
    status: str
    payment_status: str
    customer: str
    reference: str
    currency: str
    subtotal: int
    price_ids: tuple[str, ...]
    payment_intent: str
    subscription: str
    invoice: str
    livemode: bool

    @classmethod
    def of(cls, content: Content) -> SessionFacts:
        discount = (content.get("total_details") or {}).get("amount_discount") or 0
        lines = _listed(content.get("line_items"))
        return cls(
            id=content["id"],
            url=content.get("url") or "",
            status=content.get("status") or "",
            payment_status=content.get("payment_status") or "",
            customer=id_of(content.get("customer")),
            reference=content.get("client_reference_id") or "",
            currency=content.get("currency") or "",
            subtotal=(content.get("amount_subtotal") or 0) - discount,
            price_ids=tuple(_price(line) for line in lines),
            payment_intent=id_of(content.get("payment_intent")),
            subscription=id_of(content.get("subscription")),
            invoice=id_of(content.get("invoice")),
            livemode=bool(content.get("livemode")),
        )


@dataclass(frozen=True, slots=True)
class SubscriptionFacts:
    """A subscription with its newest invoice read into it."""

    id: str
    customer: str
    status: str
    price_ids: tuple[str, ...]
    item: str
    reference: str
    started_at: datetime
    period_start: datetime
    period_end: datetime
    paid_until: datetime
    cancels_at: datetime | None
    ended_at: datetime | None
    unpaid_since: datetime | None
    livemode: bool

    @classmethod
    def of(cls, content: Content) -> SubscriptionFacts:
        items = _listed(content.get("items"))
        start = _period(content, items, "current_period_start")
        end = _period(content, items, "current_period_end")
        invoice = content.get("latest_invoice")
        invoice = invoice if isinstance(invoice, Mapping) else {}
        is_unpaid = invoice.get("status") not in (None, "paid", "void")
        renews = invoice.get("billing_reason") in ("subscription_cycle", "subscription_create")
        cancels_at = content.get("cancel_at") or (end if content.get("cancel_at_period_end") else None)
        return cls(
            id=content["id"],
            customer=id_of(content.get("customer")),
            status=content["status"],
            price_ids=tuple(_price(item) for item in items),
            item=items[0]["id"] if items else "",
            reference=(content.get("metadata") or {}).get("order") or "",
            started_at=_at(content["created"]),
            period_start=_at(start),
            period_end=_at(end),
            paid_until=_at(start if is_unpaid and renews else end),
            cancels_at=_maybe_at(cancels_at),
            ended_at=_maybe_at(content.get("ended_at")),
            unpaid_since=_maybe_at(invoice.get("created")) if is_unpaid else None,
            livemode=bool(content.get("livemode")),
        )


@dataclass(frozen=True, slots=True)
class ReversalFacts:
    """Money that went back, or may: `is_taken` once it is more than an inquiry, `is_restored` when we have it again."""

    id: str
    kind: Literal["refund", "dispute"]
    cents: int
    created: int
    is_taken: bool
    is_restored: bool

    @classmethod
    def of_refund(cls, content: Content) -> ReversalFacts:
        is_restored = content.get("status") in ("failed", "canceled")
        return cls(content["id"], "refund", content["amount"], content["created"], True, is_restored)

    @classmethod
    def of_dispute(cls, content: Content) -> ReversalFacts:
        status = content["status"]
        is_inquiry = status.startswith("warning_")
        is_restored = status in ("won", "prevented")
        return cls(content["id"], "dispute", content["amount"], content["created"], not is_inquiry, is_restored)


@dataclass(frozen=True, slots=True)
class PaymentFacts:
    """A payment with what became of it, in the order it happened."""

    id: str
    customer: str
    status: str
    cents: int
    currency: str
    paid_at: datetime
    livemode: bool
    charge: str
    reversals: tuple[ReversalFacts, ...]

    @classmethod
    def of(cls, intent: Content, *, refunds: Sequence[Content], disputes: Sequence[Content]) -> PaymentFacts:
        reversals = [ReversalFacts.of_refund(refund) for refund in refunds]
        reversals += [ReversalFacts.of_dispute(dispute) for dispute in disputes]
        return cls(
            id=intent["id"],
            customer=id_of(intent.get("customer")),
            status=intent["status"],
            cents=intent.get("amount_received") or 0,
            currency=intent["currency"],
            paid_at=_at(intent["created"]),
            livemode=bool(intent.get("livemode")),
            charge=id_of(intent.get("latest_charge")),
            reversals=tuple(sorted(reversals, key=lambda one: (one.created, one.id))),
        )


@dataclass(frozen=True, slots=True)
class EventFacts:
    """An announcement: what it is about, and nothing of what it claims."""

    id: str
    type: str
    created: datetime
    api_version: str
    livemode: bool
    account: str
    object_type: str  # session, subscription, payment, or what it is called at Stripe when it is none of ours
    object_id: str
    customer: str

    @classmethod
    def of(cls, content: Content) -> EventFacts:
        """Raises KeyError, TypeError or ValueError for what is no announcement."""
        thing = content["data"]["object"]
        object_type, object_id = _subject(thing)
        if content["object"] != "event" or not isinstance(content["livemode"], bool):
            raise ValueError("not an event")
        return cls(
            id=_text(content["id"]),
            type=_text(content["type"]),
            created=_at(content["created"]),
            api_version=_text(content.get("api_version") or ""),
            livemode=content["livemode"],
            account=_text(content.get("account") or ""),
            object_type=_text(object_type),
            object_id=_text(object_id),
            customer=_text(id_of(thing.get("customer"))),
        )


def id_of(value: Any) -> str:
    """The id of what may be an id, the whole object, or nothing."""
    return value["id"] if isinstance(value, Mapping) else value or ""


def invoice_subscription(invoice: Content) -> str:
    """The subscription an invoice is of; nothing for an invoice of a pack."""
    details = (invoice.get("parent") or {}).get("subscription_details") or {}
    return id_of(details.get("subscription") or invoice.get("subscription"))


def _subject(thing: Content) -> tuple[str, str]:
    match thing.get("object"):
        case "checkout.session":
            return "session", thing["id"]
        case "subscription":
            return "subscription", thing["id"]
        case "invoice" if subscription := invoice_subscription(thing):
            return "subscription", subscription
        case "payment_intent":
            return "payment", thing["id"]
        case "charge" | "refund" | "dispute" if payment := id_of(thing.get("payment_intent")):
            return "payment", payment
        case other:
            return str(other), id_of(thing.get("id"))


def _price(line: Content) -> str:
    """The id of what is bought once; nothing here is sold by the dozen, so other quantities are of no price."""
    return id_of(line.get("price")) if line.get("quantity") == 1 else ""


def _period(content: Content, items: list[Content], name: str) -> int:
    of_items = [int(item[name]) for item in items if item.get(name)]
    if of_items:
        return max(of_items)
    return int(content[name])


def _listed(value: Any) -> list[Content]:
    return list(value["data"]) if isinstance(value, Mapping) else []


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 100 or not value.isprintable():
        raise ValueError("not a text of an announcement")
    return value


def _at(seconds: Any) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _maybe_at(seconds: Any) -> datetime | None:
    return None if seconds is None else _at(seconds)
