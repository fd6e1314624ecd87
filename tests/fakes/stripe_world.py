"""What happens at Stripe: people pay, cards fail, months pass, money goes back. All of it is announced as it was."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from calendar import timegm
from dataclasses import dataclass, field
from typing import Any

from tests.fakes import stripe_objects as objects
from tests.fakes.stripe_objects import Thing

MONTH_SECONDS = 30 * 86_400
PRICES = {
    "price_pro": ("month", 1_900),
    "price_500": ("", 2_000),
    "price_1500": ("", 5_400),
    "price_4000": ("", 12_800),
}


class NoSuchThing(Exception):
    """There is no object of that id."""


@dataclass(slots=True)
class World:
    """Every object by its id, in the order they were made, and every event in the order it happened.

    The clock is the real one, `late_seconds` ahead of it; with `stopped_at` it stands there.
    """

    things: dict[str, Thing] = field(default_factory=dict)
    events: list[Thing] = field(default_factory=list)
    late_seconds: int = 0
    stopped_at: int | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    prefix: str = field(default_factory=lambda: f"{time.time_ns():x}")

    def __post_init__(self) -> None:
        for id, (interval, cents) in PRICES.items():
            self.add_price(id, cents, interval=interval)

    @property
    def now(self) -> int:
        return (self.stopped_at or timegm(time.gmtime())) + self.late_seconds

    def new_id(self, kind: str) -> str:
        return f"{kind}_{self.prefix}{next(self._numbers):05d}"

    def get(self, id: str) -> Thing:
        if id not in self.things:
            raise NoSuchThing(id)
        return self.things[id]

    def of_kind(self, kind: str) -> list[Thing]:
        """The newest first."""
        return [thing for thing in reversed(self.things.values()) if thing["object"] == kind]

    def keep(self, thing: Thing) -> Thing:
        self.things[thing["id"]] = thing
        return thing

    def add_price(self, id: str, cents: int, *, interval: str = "", currency: str = "usd") -> Thing:
        recurring = {"interval": interval} if interval else None
        kind = "recurring" if interval else "one_time"
        price = {"id": id, "object": "price", "unit_amount": cents, "currency": currency, "type": kind}
        return self.keep({**price, "recurring": recurring, "product": f"prod_{id}", "livemode": False})

    def announce(self, kind: str, thing: Thing) -> None:
        event = {
            "id": self.new_id("evt"),
            "object": "event",
            "type": kind,
            "created": self.now,
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "data": {"object": copy.deepcopy(thing)},
            "is_delivered": False,
        }
        self.events.append(event)

    # Checkouts

    def pay(self, session_id: str, *, is_late: bool = False) -> Thing:
        """A person pays; `is_late` by a way that takes days to say whether it worked."""
        with self.lock:
            session = self.get(session_id)
            assert session["status"] == "open", session["status"]
            session["status"] = "complete"
            if session["mode"] == "subscription":
                session["payment_status"] = "paid"
                self._subscribe(session)
            else:
                intent = self._intent(session["customer"], session["amount_total"], metadata=session["metadata"])
                session["payment_intent"] = intent["id"]
                if is_late:
                    intent["status"] = "processing"
                else:
                    self._arrive(session, intent)
            self.announce("checkout.session.completed", session)
            return session

    def settle(self, session_id: str, *, arrives: bool) -> None:
        """A late payment arrives, or does not."""
        with self.lock:
            session = self.get(session_id)
            intent = self.get(session["payment_intent"])
            if arrives:
                self._arrive(session, intent)
                self.announce("checkout.session.async_payment_succeeded", session)
            else:
                intent["status"] = "requires_payment_method"
                self.announce("checkout.session.async_payment_failed", session)

    def expire(self, session_id: str) -> None:
        with self.lock:
            session = self.get(session_id)
            session["status"] = "expired"
            self.announce("checkout.session.expired", session)

    # Subscriptions

    def renew(self, subscription_id: str, *, is_paid: bool = True) -> None:
        """The period ends: the subscription ends with it if that was wanted, else the next one is invoiced."""
        with self.lock:
            subscription = self.get(subscription_id)
            if subscription["cancel_at_period_end"]:
                return self.end(subscription_id)
            (item,) = subscription["items"]["data"]
            item["current_period_start"] = item["current_period_end"]
            item["current_period_end"] += MONTH_SECONDS
            self._bill(subscription, "subscription_cycle", is_paid=is_paid)
            subscription["status"] = "active" if is_paid else "past_due"
            self.announce("customer.subscription.updated", subscription)

    def recover(self, subscription_id: str) -> None:
        """The open invoice is paid after all."""
        with self.lock:
            subscription = self.get(subscription_id)
            invoice = self.get(subscription["latest_invoice"])
            invoice |= {"status": "paid", "amount_paid": invoice["amount_due"]}
            subscription["status"] = "active"
            self.announce("invoice.paid", invoice)
            self.announce("customer.subscription.updated", subscription)

    def end(self, subscription_id: str) -> None:
        with self.lock:
            subscription = self.get(subscription_id)
            subscription |= {"status": "canceled", "ended_at": self.now, "canceled_at": self.now}
            self.announce("customer.subscription.deleted", subscription)

    def update(self, subscription_id: str, **fields: Any) -> Thing:
        with self.lock:
            subscription = self.get(subscription_id)
            subscription |= fields
            self.announce("customer.subscription.updated", subscription)
            return subscription

    # Money that goes back

    def refund(self, intent_id: str, cents: int, *, status: str = "succeeded") -> Thing:
        with self.lock:
            charge = self.get(self.get(intent_id)["latest_charge"])
            refund = self.keep(objects.refund(self.new_id("re"), self.now, charge, cents=cents, status=status))
            charge["amount_refunded"] += cents
            charge["refunded"] = charge["amount_refunded"] == charge["amount"]
            self.announce("refund.created", refund)
            self.announce("charge.refunded", charge)
            return refund

    def fail_refund(self, refund_id: str) -> None:
        with self.lock:
            refund = self.get(refund_id)
            refund["status"] = "failed"
            self.announce("refund.failed", refund)

    def dispute(self, intent_id: str, *, status: str = "needs_response") -> Thing:
        with self.lock:
            charge = self.get(self.get(intent_id)["latest_charge"])
            charge["disputed"] = True
            made = objects.dispute(self.new_id("du"), self.now, charge, cents=charge["amount"], status=status)
            self.announce("charge.dispute.created", self.keep(made))
            return made

    def close_dispute(self, dispute_id: str, *, status: str) -> None:
        with self.lock:
            dispute = self.get(dispute_id)
            dispute["status"] = status
            self.announce("charge.dispute.closed", dispute)

    def _subscribe(self, session: Thing) -> None:
        (line,) = session["line_items"]["data"]
        made = objects.subscription(
            self.new_id("sub"),
            self.now,
            customer=session["customer"],
            price=line["price"],
            metadata=session["metadata"],
            period_end=self.now + MONTH_SECONDS,
        )
        subscription = self.keep(made)
        session["subscription"] = subscription["id"]
        self.announce("customer.subscription.created", subscription)
        self._bill(subscription, "subscription_create", is_paid=True)
        session["invoice"] = subscription["latest_invoice"]

    def _bill(self, subscription: Thing, reason: str, *, is_paid: bool) -> None:
        cents, customer = subscription["items"]["data"][0]["price"]["unit_amount"], subscription["customer"]
        id = self.new_id("in")
        invoice = objects.invoice(
            id, self.now, customer=customer, cents=cents, reason=reason, subscription=subscription["id"]
        )
        subscription["latest_invoice"] = self.keep(invoice)["id"]
        if is_paid:
            self._charge(self._intent(customer, cents, metadata={}))
            invoice |= {"status": "paid", "amount_paid": cents}
        invoice["attempt_count"] = 1
        self.announce("invoice.paid" if is_paid else "invoice.payment_failed", invoice)

    def _intent(self, customer: str, cents: int, *, metadata: Thing, currency: str = "usd") -> Thing:
        id = self.new_id("pi")
        made = objects.payment_intent(
            id, self.now, customer=customer, cents=cents, currency=currency, metadata=metadata
        )
        return self.keep(made)

    def _arrive(self, session: Thing, intent: Thing) -> None:
        session["payment_status"] = "paid"
        self._charge(intent)
        self.announce("payment_intent.succeeded", intent)

    def _charge(self, intent: Thing) -> None:
        charge = self.keep(objects.charge(self.new_id("ch"), self.now, intent))
        intent |= {"status": "succeeded", "amount_received": intent["amount"], "latest_charge": charge["id"]}
        self.announce("charge.succeeded", charge)
