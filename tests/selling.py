"""Somebody who buys, and the announcements of it: delivered through the URL and worked off as the worker would."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.test import Client

from billing import credits, inbox
from billing.credits import Balance
from billing.inbox_rows import StripeEvent
from billing.plans import plan_of
from billing.stripe_rows import Order, StripeCustomer, Subscription
from klerai.accounts.models import Person
from tests.fakes.stripe_objects import Thing
from tests.fakes.stripe_server import StripeFake
from tests.people import bearer, key_text, make_person

WEBHOOK = "/webhooks/stripe"


@cache
def a_client() -> Client:
    """One for all who say in each request who they are: every new one would load the middleware again."""
    return Client()


def announce(fake: StripeFake, event: Thing, *, client: Client | None = None) -> int:
    """Post an event as Stripe would; the status of the answer."""
    raw, header = fake.letter(event)
    status = post(raw, header, client=client)
    event["is_delivered"] = event["is_delivered"] or status == 200
    return status


def post(raw: bytes, header: str | None, *, client: Client | None = None) -> int:
    headers = {} if header is None else {"Stripe-Signature": header}
    return (client or a_client()).post(WEBHOOK, raw, content_type="application/json", headers=headers).status_code


def work_off(events: Iterable[Thing]) -> list[StripeEvent]:
    """What the worker does with each of these that were taken in."""
    return [inbox.apply(event["id"]) for event in events]


@dataclass(slots=True)
class Buyer:
    """A person at the API, with the checkouts and subscriptions that are theirs at the fake."""

    fake: StripeFake
    person: Person = field(default_factory=make_person)
    _seen: int = 0

    def __post_init__(self) -> None:
        self._seen = len(self.fake.world.events)

    def post(self, path: str, body: object) -> Any:
        headers = bearer(key_text(self.person))
        return a_client().post(path, body, content_type="application/json", headers=headers)

    def get(self, path: str) -> Any:
        return a_client().get(path, headers=bearer(key_text(self.person))).json()

    def begin(self, **wanted: object) -> str:
        """A checkout; the id of its session."""
        answer = self.post("/api/billing/checkout", wanted)
        assert answer.status_code == 200, answer.content
        return str(answer.json()["url"]).rpartition("/")[2]

    def buy(self, **wanted: object) -> Thing:
        """Begin, pay and hear of it; the session at Stripe."""
        session = self.fake.world.pay(self.begin(**wanted))
        self.hear()
        return session

    def news(self) -> list[Thing]:
        """What happened since it was last heard, of this person."""
        found = [event for event in self.fake.world.events[self._seen :] if self._is_mine(event)]
        self._seen = len(self.fake.world.events)
        return found

    def hear(self) -> list[StripeEvent]:
        events = self.news()
        assert {announce(self.fake, event) for event in events} <= {200}
        return work_off(events)

    def _is_mine(self, event: Thing) -> bool:
        thing = event["data"]["object"]
        owner = thing.get("customer") or self.fake.world.get(thing["payment_intent"])["customer"]
        return bool(owner == self.customer)

    @property
    def customer(self) -> str:
        found = StripeCustomer.objects.filter(pk=self.person.pk).first()
        return found.stripe_id if found is not None else ""

    @property
    def order(self) -> Order:
        return Order.objects.filter(person_id=self.person.pk).latest("created_at")

    @property
    def subscription(self) -> Subscription:
        return Subscription.objects.filter(person_id=self.person.pk).latest("started_at")

    @property
    def balance(self) -> Balance:
        return credits.balance_of(self.person)

    @property
    def plan(self) -> str:
        return plan_of(self.person).name
